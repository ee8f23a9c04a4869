"""What programs say about their widgets: a real Chromium over a real accessibility bus."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recorder.capture.private import is_private
from tests.recorder.conftest import Hand, Recorded, needs_x, program, to_front
from tests.recorder.test_capture_frames import LAMP
from tests.waiting import until
from trajectory.recording import Committed, ElementSeen, Event, KeyPressed, WindowChanged

Record = Callable[..., Recorded]
PAGE = """<title>sign in</title><style>* {margin: 0} input, button {position: fixed; left: 10px;
width: 300px; height: 60px}</style><input aria-label=Name style="top: 10px">
<input type=password aria-label=Secret style="top: 110px"><button style="top: 210px">Enter</button>"""


@pytest.fixture
def browser(screen: str, hand: Hand, bus: None, tmp_path: Path) -> Iterator[None]:
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    environment = {**os.environ, "DISPLAY": screen, "HOME": str(tmp_path)}
    with program(
        *("chromium", "--no-sandbox", "--no-first-run", "--force-renderer-accessibility"),
        *(f"--user-data-dir={tmp_path}/profile", "--window-position=0,0", "--window-size=900,650"),
        *("--disable-gpu", "--password-store=basic", page.as_uri()),
        env=environment,
    ):
        to_front(hand, "sign in")
        yield


def elements(events: list[Event]) -> list[ElementSeen]:
    return [e for e in events if isinstance(e, ElementSeen)]


@needs_x
@pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("chromium", "dbus-daemon")),
    reason="needs chromium and dbus",
)
def test_fields_of_a_page_are_known_and_password_fields_as_such(
    record: Record, hand: Hand, browser: None, tmp_path: Path
) -> None:
    recorded = record()
    recorded.wait(
        lambda e: any(w.url.endswith("page.html") for w in e if isinstance(w, WindowChanged)),
        "the address of the page",
    )
    seen: dict[str, ElementSeen] = {}
    tops = itertools.cycle(
        range(90, 330, 20)
    )  # the browser's bars differ: down the page, and again

    def focused(name: str) -> bool:
        hand("mousemove", "150", str(next(tops)), "click", "1")
        seen.update((e.name, e) for e in elements(recorded.events()) if e.focused)
        return name in seen

    for name in ("Name", "Secret"):
        until(lambda name=name: focused(name), f"the field {name}")  # type: ignore[misc]
    assert seen["Name"].role == "textbox" and seen["Name"].password is False
    assert seen["Secret"].role == "textbox" and seen["Secret"].password is True

    left, top, width, height = seen["Secret"].bounds
    hand("mousemove", str(left + width // 2), str(top + height // 2))

    def told_at_a_press() -> bool:
        """A busy browser may be too slow for one press; then nobody could tell, which is recorded."""
        hand("click", "1")
        pressed = [e for e in elements(recorded.events()) if not e.focused]
        return any(e.name == "Secret" and e.password for e in pressed)

    until(told_at_a_press, "the field under the pointer")
    hand("type", "--delay", "5", "canary")
    recorded.wait(
        lambda e: sum(isinstance(k, KeyPressed) for k in e) >= 6, "keys in a password field"
    )
    assert not any(isinstance(e, Committed) for e in recorded.stop())


@needs_x
def test_where_nobody_tells_the_focus_may_be_a_password(
    record: Record, hand: Hand, screen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    with program(sys.executable, "-c", LAMP, env={**os.environ, "DISPLAY": screen}):
        to_front(hand, "^lamp$")
        recorded = record()
        events = recorded.wait(elements, "word of the focus")
    assert elements(events)[0].focused and elements(events)[0].password is None


def test_private_windows_are_told_by_their_title_or_by_how_they_were_started() -> None:
    assert is_private("firefox", "Bank — Mozilla Firefox Private Browsing", 0)
    assert is_private("google-chrome", "New Tab - Google Chrome (Incognito)", 0)
    assert not is_private("firefox", "Bank — Mozilla Firefox", 0)
    assert not is_private("gedit", "private window.txt", 0)
    with program("sleep", "60") as plain:
        assert not is_private("chromium", "Bank", plain.pid)
    with program("sh", "-c", "sleep 60; true", "--incognito") as hidden:
        until(lambda: is_private("chromium", "Bank", hidden.pid), "the program's words")
