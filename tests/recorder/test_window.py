"""The small window: what it says and does, and that nothing of it is in the recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from Xlib import X, display, error

from recorder.capture.clock import Clock
from recorder.capture.errors import CaptureError
from recorder.capture.own import Own
from recorder.capture.sound import Level
from recorder.capture.window import BUTTONS, Face, draw, pressed_at, size
from recorder.capture.window.face import fitting
from recorder.capture.x11.panel import Controls, Panel
from recorder.session import Notices, Session, State, Wish
from recorder.spool import Consent, Task
from tests.recorder.conftest import Hand, Recorded, needs_x
from tests.waiting import until
from trajectory.recording import (
    ElementSeen,
    Event,
    FrameTaken,
    KeyReleased,
    Marked,
    Moved,
    Paused,
    Pressed,
    Released,
    Resumed,
    Scrolled,
    Stopped,
)

Record = Callable[..., Recorded]
Box = tuple[int, int, int, int]
GREY = (128, 128, 128)
WIDE, HIGH = size(collapsed=False, scale=1.0)
DOT = size(collapsed=True, scale=1.0)


class Seen:
    """The window as an X client finds it."""

    def __init__(self, screen: str, hand: Hand) -> None:
        self._connection, self._hand = display.Display(screen), hand

    def box(self) -> Box:
        """Return where it is; (0, 0, 0, 0) while it is not on the screen."""
        for window in self._connection.screen().root.query_tree().children:
            try:
                names, place = window.get_wm_class(), window.get_geometry()
                shown = window.get_attributes().map_state == X.IsViewable
            except error.BadWindow:
                continue
            if names and names[0] == "tandem-recorder" and place.height > 4 and shown:
                return place.x, place.y, place.width, place.height
        return 0, 0, 0, 0

    def wait(self, wanted: tuple[int, int]) -> Box:
        """Return where it is once it has a size."""
        until(lambda: self.box()[2:] == wanted, f"the window of {wanted}")
        return self.box()

    def middle(self, button: str) -> tuple[str, str]:
        left, top, *_ = self.box()
        a, b, c, d = BUTTONS[button]
        return str(left + (a + c) // 2), str(top + (b + d) // 2)

    def click(self, button: str) -> None:
        self._hand("mousemove", *self.middle(button), "click", "1")

    def colour(self, x: int, y: int) -> tuple[int, ...]:
        image = self._connection.screen().root.get_image(x, y, 1, 1, X.ZPixmap, 0xFFFFFFFF)
        return tuple(bytes(image.data)[2::-1])

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def seen(screen: str, hand: Hand) -> Iterator[Seen]:
    window = Seen(screen, hand)
    yield window
    window.close()


def mouse(events: list[object]) -> list[object]:
    return [e for e in events if isinstance(e, Moved | Pressed | Released | Scrolled)]


@needs_x
def test_its_buttons_do_what_the_hotkeys_do_and_are_not_recorded(
    record: Record, hand: Hand, seen: Seen, terminal: str
) -> None:
    recorded = record()
    left, top, *_ = seen.wait((WIDE, HIGH))
    assert (left, top) == (1280 - WIDE - 16, 720 - HIGH - 16)
    hand("mousemove", "400", "300", "click", "1")
    recorded.wait(lambda e: any(isinstance(k, Released) for k in e), "the click beside it")
    seen.click("mark")
    recorded.wait(lambda e: any(isinstance(k, Marked) for k in e), "the marker")
    hand("click", "4", "click", "3")
    seen.click("pause")
    until(lambda: recorded.session.state is State.PAUSED, "the pause")
    until(lambda: seen.colour(left + 30, top + 5) == (246, 172, 20), "the amber window")
    seen.click("pause")
    until(lambda: recorded.session.state is State.RECORDING, "the end of the pause")
    until(lambda: seen.colour(left + 30, top + 5) == (28, 31, 38), "the dark window")
    hand("mousemove", "410", "310", "click", "1", "key", "a")
    recorded.wait(lambda e: any(isinstance(k, KeyReleased) for k in e), "the key")
    seen.click("stop")
    assert recorded.session.stopped.wait(30)
    events = recorded.stop()
    assert [(e.x, e.y) for e in events if isinstance(e, Pressed | Released)] == [
        (400, 300), (400, 300), (410, 310), (410, 310),
    ]  # fmt: skip
    inside = [e for e in mouse([*events]) if left <= e.x < left + WIDE and top <= e.y < top + HIGH]  # type: ignore[attr-defined]
    assert inside == []
    for kind in (Marked, Paused, Resumed, Stopped):
        assert sum(isinstance(e, kind) for e in events) == 1
    until(lambda: seen.box() == (0, 0, 0, 0), "its end")


@needs_x
def test_it_is_dragged_without_a_trace(record: Record, hand: Hand, seen: Seen) -> None:
    recorded = record()
    left, top, *_ = seen.wait((WIDE, HIGH))
    hand("mousemove", str(left + 150), str(top + 10), "mousedown", "1")
    for x, y in ((800, 400), (500, 200), (640, 5)):
        hand("mousemove", str(x), str(y))
    hand("mouseup", "1", "mousemove", "200", "700", "click", "1")
    recorded.wait(lambda e: any(isinstance(k, Released) for k in e), "the click beside it")
    events = recorded.stop()
    until(lambda: seen.box() == (0, 0, 0, 0), "its end")
    assert {(e.x, e.y) for e in events if isinstance(e, Pressed | Released)} == {(200, 700)}
    assert {(e.x, e.y) for e in events if isinstance(e, Moved)} <= {(200, 700)}
    assert recorded.troubles == []


@needs_x
def test_it_stays_on_the_screen_below_the_strip_and_above_other_windows(
    record: Record, hand: Hand, seen: Seen, terminal: str
) -> None:
    recorded = record()
    left, top, *_ = seen.wait((WIDE, HIGH))
    hand("search", "--name", terminal, "windowmove", "--sync", str(left - 50), str(top - 50))
    hand("search", "--name", terminal, "windowraise")
    until(lambda: seen.colour(left + 30, top + 5) == (28, 31, 38), "the window above the terminal")
    hand("mousemove", str(left + 150), str(top + 10), "mousedown", "1", "mousemove", "2", "0")
    until(lambda: seen.box()[:2] == (0, 4), "the window in the corner")
    hand("mouseup", "1")
    seen.click("collapse")
    dot = seen.wait(DOT)
    assert dot[0] + dot[2] == WIDE  # its right upper corner stayed
    hand("key", "ctrl+alt+p")
    seen.wait((WIDE, HIGH))  # a pause is said plainly
    hand("key", "ctrl+alt+p")
    dot = seen.wait(DOT)
    hand("mousemove", str(dot[0] + 15), str(dot[1] + 15), "click", "1")
    seen.wait((WIDE, HIGH))
    events = recorded.stop()
    assert not any(isinstance(e, Pressed | Released) for e in events)
    assert not any(isinstance(e, ElementSeen) and not e.focused for e in events)


@needs_x
def test_no_picture_shows_it_and_it_causes_none(
    record: Record, hand: Hand, seen: Seen, terminal: str
) -> None:
    recorded = record()
    box = seen.wait((WIDE, HIGH))
    hand("mousemove", "30", "650", "key", "a")
    recorded.wait(lambda e: any(isinstance(k, KeyReleased) for k in e), "the key")
    # Its clock goes on for some seconds, and nothing else changes but the caret of the terminal.
    before = recorded.session.recorded()
    until(lambda: recorded.session.recorded() > before + 3, "three seconds")
    events = recorded.stop()
    frames = [e for e in events if isinstance(e, FrameTaken)]
    # Those of the start, before the key, of its effect, at the end; not one each second.
    assert len(frames) <= 6
    for frame in {f.sha256 for f in frames if f.t > 0.5}:
        with Image.open(recorded.folder.frames / f"{frame}.png") as picture:
            part = picture.crop((box[0], box[1], box[0] + box[2], box[1] + box[3]))
            assert part.getcolors() == [(WIDE * HIGH, GREY)]


@needs_x
def test_there_is_none_if_its_person_wants_none(screen: str, seen: Seen, tmp_path: Path) -> None:
    wish = Wish(
        screen, tmp_path, Task("", "", ""), "demonstration", Consent("1", 0.0), window=False
    )
    session = Session(wish, Notices())
    until(lambda: seen.colour(600, 1) == (0xD8, 0x1E, 0x2C), "the strip")
    assert seen.box() == (0, 0, 0, 0)
    session.stop()


@needs_x
def test_a_second_recorder_of_a_display_is_refused(
    record: Record, screen: str, tmp_path: Path
) -> None:
    recorded = record()
    wish = Wish(screen, tmp_path / "two", Task("", "", ""), "demonstration", Consent("1", 0.0))
    with pytest.raises(CaptureError, match=r"another recorder records .* already"):
        Session(wish, Notices())
    assert list((tmp_path / "two").iterdir()) == []
    recorded.stop()
    Session(wish, Notices()).stop()


@needs_x
def test_it_is_drawn_only_when_it_says_something_else(screen: str) -> None:
    connection = display.Display(screen)
    said = iter((1.0, 1.4, 2.1, 2.9))
    panel = Panel(
        connection,
        Controls(Own(), Clock(), {}, lambda: next(said), (0, 0, 1280, 720), 1.0, listening=False),
    )
    drawn: list[Image.Image] = []
    panel._paint = drawn.append  # type: ignore
    counts = []
    for _ in range(4):
        assert panel.tick() == 1.0
        counts.append(len(drawn))
    assert counts == [1, 1, 2, 2]
    panel.show("paused")
    assert panel.tick() is None  # nothing changes: nothing is waited for
    connection.close()


def test_a_long_cause_is_cut_and_a_short_one_is_large() -> None:
    assert fitting("Paused: nothing is recorded", 254) == ("Paused: nothing is recorded", 15.0)
    text, points = fitting("Paused: the disk takes nothing more (No space left on device)", 254)
    assert points == 12.0 and text.startswith("Paused: the disk takes nothing") and text[-1] == "…"


@needs_x
def test_why_it_paused_is_said_until_it_goes_on(screen: str) -> None:
    connection = display.Display(screen)
    panel = Panel(
        connection,
        Controls(Own(), Clock(), {}, lambda: 1.0, (0, 0, 1280, 720), 1.0, listening=False),
    )
    panel.note("Paused: no room", until_changed=True)
    panel.show("paused")
    assert panel.tick() is None and panel._face.note == "Paused: no room"
    panel.show("recording")
    panel.tick()
    assert panel._face.note == ""
    panel.note("Marker set", until_changed=False)
    panel.tick()
    assert panel._face.note == "Marker set"
    connection.close()


def test_the_voice_and_the_buttons_are_where_they_are_drawn() -> None:
    silent, loud = draw(Face(level=0), 1.0), draw(Face(level=12), 1.0)
    assert silent.getpixel((200, 17)) != loud.getpixel((200, 17))
    assert draw(Face(silent_s=30, level=0), 1.0).tobytes() != silent.tobytes()
    for scale in (1.0, 1.5, 2.0):
        for name, (left, top, right, bottom) in BUTTONS.items():
            middle = (left + right) / 2 * scale, (top + bottom) / 2 * scale
            assert pressed_at(*middle, Face(), scale) == name
            assert draw(Face(down=name), scale).tobytes() != draw(Face(), scale).tobytes()
    assert pressed_at(160, 50, Face(paused=True), 1.0) == ""  # a pause has no markers
    assert pressed_at(15, 15, Face(collapsed=True), 1.0) == ""
    assert Level(0.5, 0.0).peak == 0.5


def own() -> Own:
    """A window that was at the left from 1 to 5 and at the right since 4."""
    window = Own()
    window.comes(1.0, (0, 0, 100, 50))
    window.came(1.1)
    window.comes(4.0, (500, 0, 100, 50))
    window.came(5.0)
    return window


def test_places_are_known_for_the_past() -> None:
    window = own()
    assert window.during(0.0, 0.5) == []
    assert window.during(2.0, 2.1) == [(0, 0, 100, 50)]
    assert window.during(4.5, 4.6) == [(0, 0, 100, 50), (500, 0, 100, 50)]
    assert window.during(9.0, 9.0) == [(500, 0, 100, 50)]
    assert window.holds((510, 10, 20, 20), 9.0) and not window.holds((490, 10, 20, 20), 9.0)
    window.went(10.0)
    assert window.during(11.0, 11.0) == []


def test_a_long_way_takes_little_memory_and_forgets_no_place() -> None:
    window = Own()
    for n in range(5000):
        window.comes(float(n), (n % 900, 0, 100, 50))
        window.came(n + 0.5)
    assert len(window._places) <= 256
    for n in (0, 100, 3000, 4999):
        assert any(
            a <= n % 900 and n % 900 + 100 <= a + c
            for a, _, c, _ in window.during(n + 0.1, n + 0.2)
        )


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ("P10 R10", ""),
        ("P10 M300 R300", ""),
        ("P300 M10 R10", "P300 M10 R10"),
        ("P300 p10 r10 R300 P10 R10", "P300 p10 r10 R300"),
        ("P10 p300 r300 R10 P300", "P300"),
        ("M300 M10 M300", "M300 M300"),
        ("S10 S300", "S300"),
        ("R10 R300", "R300"),
        ("P300 P10 R10", ""),
    ],
)  # fmt: skip
def test_what_begins_on_it_is_its_own(events: str, kept: str) -> None:
    window = Own()
    window.comes(0.0, (0, 0, 100, 50))
    kinds: dict[str, Callable[[int], Event]] = {
        "P": lambda x: Pressed(1.0, x, 9, "left"), "R": lambda x: Released(1.0, x, 9, "left"),
        "p": lambda x: Pressed(1.0, x, 9, "right"), "r": lambda x: Released(1.0, x, 9, "right"),
        "M": lambda x: Moved(1.0, x, 9), "S": lambda x: Scrolled(1.0, x, 9, 0, 1),
    }  # fmt: skip
    passed = [word for word in events.split() if not window.takes(kinds[word[0]](int(word[1:])))]
    if (
        events == "P300 P10 R10"
    ):  # the release was lost: from the second press on it is the window's
        assert passed == ["P300"]
        return
    assert " ".join(passed) == kept


def test_threads_may_ask_while_it_moves() -> None:
    window, done = Own(), threading.Event()
    wrong: list[Exception] = []

    def ask() -> None:
        try:
            while not done.is_set():
                window.during(0.0, time.monotonic())
                window.takes(Moved(time.monotonic(), 5, 5))
        except Exception as failure:
            wrong.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    for n in range(2000):
        window.comes(float(n), (n, n, 9, 9))
        window.came(float(n))
    done.set()
    thread.join()
    assert wrong == []
