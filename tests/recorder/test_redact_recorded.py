"""A password that was typed in a real browser: removed from the press or the key that moved there."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable

import pytest

from recorder.redact import Denied, Detectors, Judge
from tests.recorder.conftest import Hand, Recorded, needs_x
from tests.recorder.test_capture_elements import browser as browser
from tests.waiting import until
from trajectory import recording as rec

Record = Callable[..., Recorded]
TYPED = "zwq7"


@needs_x
@pytest.mark.usefixtures("browser")
@pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("chromium", "dbus-daemon")),
    reason="needs chromium and dbus",
)
def test_a_password_is_removed_from_the_key_that_moved_there(
    record: Record,
    hand: Hand,
) -> None:
    recorded = record()

    def focused() -> list[rec.ElementSeen]:
        return [e for e in recorded.events() if isinstance(e, rec.ElementSeen) and e.focused]

    def found() -> list[rec.ElementSeen]:
        """Go down the page until the field answers: the browser's bars differ."""
        hand("mousemove", "150", str(next(tops)), "click", "1")
        return [e for e in focused() if e.name == "Name"]

    def at_name() -> bool:
        """A busy browser answers late, when the hand is elsewhere by then: back to where it is."""
        hand("mousemove", str(left + width // 2), str(top + height // 2), "click", "1")
        return focused()[-1].name == "Name"

    tops = itertools.cycle(range(90, 330, 20))
    left, top, width, height = until(found, "the field for the name")[0].bounds
    until(at_name, "the focus on it")
    hand("type", "--delay", "20", "ada")
    hand("key", "Tab")
    hand("type", "--delay", "20", TYPED)
    until(lambda: any(e.password for e in focused()), "word of the password field", deadline_s=60)
    hand("key", "Tab")
    until(lambda: focused()[-1].password is False, "word of the button", deadline_s=60)
    events = recorded.stop()
    keys = [e for e in events if isinstance(e, (rec.KeyPressed, rec.KeyReleased))]
    tab = next(e for e in keys if e.key == "tab")
    judge = Judge(Detectors([]), Denied())
    for event in events:
        judge.take(event)
    removed = [r for r in judge.close() if "input" in r.streams]
    (field,) = [r for r in removed if r.cause == "password field"]
    told = next(e for e in events if isinstance(e, rec.ElementSeen) and e.password)
    left = next(e for e in events if isinstance(e, rec.ElementSeen) and e.focused and e.t > told.t
                and e.password is False)  # fmt: skip
    assert field.began <= tab.t and field.ended >= left.t and field.place == told.bounds
    kept = [e for e in keys if not any(r.began <= e.t <= r.ended for r in removed)]
    assert not {e.key for e in kept} & set(TYPED)
    frames = [e for e in events if isinstance(e, rec.FrameTaken) and tab.t <= e.t <= left.t]
    assert all(field.began <= e.t and e.began <= field.ended for e in frames)
