"""Pictures of a real display: the one before an action shows nothing of its effect."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from PIL import Image

from tests.recorder.conftest import Hand, Recorded, needs_x, program, to_front
from tests.waiting import until
from trajectory.recording import ElementSeen, Event, FrameTaken, Pressed, WindowChanged

pytestmark = needs_x
Record = Callable[..., Recorded]

# Becomes another colour as soon as it hears of a press.
LAMP = """
from Xlib import X, display
d = display.Display(); s = d.screen()
w = s.root.create_window(200, 100, 400, 300, 0, s.root_depth, background_pixel=0xffffff,
                         event_mask=X.ButtonPressMask | X.ExposureMask)
w.set_wm_name("lamp"); w.set_wm_normal_hints(flags=1); w.map(); shade = 255
while True:
    e = d.next_event()
    if e.type == X.ButtonPress:
        shade -= 50
        w.change_attributes(background_pixel=shade * 0x10101); w.clear_area(); d.flush()
"""


@pytest.fixture
def lamp(screen: str, hand: Hand) -> Iterator[None]:
    with program(sys.executable, "-c", LAMP, env={**os.environ, "DISPLAY": screen}):
        to_front(hand, "^lamp$")
        yield


def frames(events: list[Event]) -> list[FrameTaken]:
    return [e for e in events if isinstance(e, FrameTaken)]


def shade(recorded: Recorded, frame: FrameTaken, at: tuple[int, int]) -> int:
    with Image.open(recorded.folder.frames / f"{frame.sha256}.png") as picture:
        return int(picture.convert("L").getpixel(at))  # type: ignore[arg-type]


def test_the_picture_before_a_press_shows_nothing_of_it(
    record: Record, hand: Hand, lamp: None
) -> None:
    recorded = record()
    hand("mousemove", "400", "250")

    def answered(n: int) -> bool:
        return shade(recorded, frames(recorded.events())[-1], (400, 250)) == 255 - 50 * n

    for n in range(1, 5):
        hand("click", "1")
        # The lamp has answered, and that was seen, before the next press.
        until(partial(answered, n), "a picture of the answer")
    events = recorded.stop()
    presses = [e for e in events if isinstance(e, Pressed)]
    assert len(presses) == 4
    for n, press in enumerate(presses):
        before = [f for f in frames(events) if f.t <= press.t][-1]
        assert before.t < press.t
        assert shade(recorded, before, (400, 250)) == 255 - 50 * n
        # That nothing was drawn until the press is said, however young the picture was; at the start
        # the sign may still be drawn.
        assert n == 0 or (before.began == before.t and press.t - before.t < 0.02)
        after = next(f for f in frames(events) if f.began > press.t)
        assert shade(recorded, after, (400, 250)) == 205 - 50 * n


def test_every_picture_is_named_by_what_it_holds(record: Record, hand: Hand, lamp: None) -> None:
    recorded = record()
    hand("mousemove", "400", "250", "click", "1")
    recorded.wait(lambda e: len({f.sha256 for f in frames(e)}) >= 2, "two pictures")
    for frame in frames(recorded.stop()):
        data = (recorded.folder.frames / f"{frame.sha256}.png").read_bytes()
        assert hashlib.sha256(data).hexdigest() == frame.sha256
        assert frame.began <= frame.t
        assert (frame.width, frame.height) == (1280, 720)


def test_a_still_screen_makes_no_new_pictures(record: Record, hand: Hand, lamp: None) -> None:
    recorded = record()
    hand("mousemove", "900", "600")

    def still() -> bool:
        """Whether keys that change nothing make none; the window may still be drawn at the start."""
        before = frames(recorded.events())
        for _ in range(3):
            hand("key", "Escape")
        after = recorded.wait(lambda e: len(frames(e)) > len(before), "word that nothing changed")
        return {f.sha256 for f in frames(after)} == {f.sha256 for f in before}

    until(still, "a screen that is still")
    assert still()


def test_windows_are_told_with_title_program_and_place(
    record: Record, hand: Hand, terminal: str, lamp: None
) -> None:
    recorded = record()
    hand("search", "--name", "^lamp$", "set_window", "--name", "another title")
    recorded.wait(
        lambda e: any(w.title == "another title" for w in e if isinstance(w, WindowChanged)),
        "the new title",
    )
    hand("search", "--name", terminal, "windowactivate", "--sync")
    events = recorded.wait(
        lambda e: any(w.title == terminal for w in e if isinstance(w, WindowChanged)),
        "the other window",
    )
    seen = [e for e in events if isinstance(e, WindowChanged)]
    titles = list(dict.fromkeys(e.title for e in seen if e.title))
    assert titles == ["lamp", "another title", terminal]
    assert seen[0].bounds[2:] == (400, 300)
    assert seen[-1].app == "xterm" and not seen[-1].private


def test_a_window_that_is_moved_is_told_where_it_ends(
    record: Record, hand: Hand, lamp: None, screen: str
) -> None:
    recorded = record()

    def places(events: list[Event]) -> list[tuple[int, int, int, int]]:
        return [e.bounds for e in events if isinstance(e, WindowChanged) and e.title == "lamp"]

    recorded.wait(places, "the window")
    steps = [("windowmove", str(100 + n), "200", "sleep", "0.01") for n in range(0, 60, 4)]
    hand("search", "--name", "^lamp$", *(word for step in steps for word in step))
    hand("search", "--name", "^lamp$", "windowsize", "--sync", "320", "240")
    moved = recorded.wait(lambda e: places(e)[-1][2:] == (320, 240), "the new size")
    left, top, _, _ = places(moved)[-1]
    assert 150 <= left <= 170 and 200 <= top <= 240
    assert len(places(moved)) < 6
    # Who has the focus there is told again.
    place = next(e.t for e in moved if isinstance(e, WindowChanged) and e.bounds[2] == 320)
    recorded.wait(
        lambda e: any(isinstance(x, ElementSeen) and x.focused and x.t >= place for x in e),
        "the focus",
    )
