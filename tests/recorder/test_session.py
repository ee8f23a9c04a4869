"""A recording from start to stop: what a pause keeps out, and what its person sees."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from Xlib import X, display

from recorder.capture.errors import CaptureError
from recorder.capture.start import display as display_to_record
from recorder.capture.x11.frames import Frames
from recorder.session import State
from recorder.spool.reading import written
from tests.recorder.conftest import Hand, Recorded, needs_x
from tests.waiting import until
from trajectory.recording import (
    FrameTaken,
    KeyPressed,
    KeyReleased,
    Paused,
    Resumed,
    Stopped,
)

Record = Callable[..., Recorded]


def colour(screen: str, x: int, y: int) -> tuple[int, ...]:
    """Return a pixel as the person sees it."""
    connection = display.Display(screen)
    image = connection.screen().root.get_image(x, y, 1, 1, X.ZPixmap, 0xFFFFFFFF)
    connection.close()
    data = image.data if isinstance(image.data, bytes) else image.data.encode()
    return data[2], data[1], data[0]


def whole(recorded: Recorded) -> set[Path]:
    """Return the pictures that are there, without one that is being written."""
    return {path for path in recorded.folder.frames.iterdir() if path.name[0] != "."}


@needs_x
def test_nothing_at_all_is_kept_of_a_pause(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand("type", "--delay", "1", "before")
    hand("key", "ctrl+alt+p", "c", "a", "n", "a", "r", "y")
    until(lambda: recorded.session.state is State.PAUSED, "the pause")
    hand("type", "--delay", "1", "canary-4711")
    hand("mousemove", "640", "360", "click", "1", "click", "4")
    hand("search", "--name", terminal, "set_window", "--name", "canary-4711")
    pictures = whole(recorded)
    hand("key", "ctrl+alt+p")
    recorded.wait(lambda e: any(isinstance(r, Resumed) for r in e), "the end of the pause")
    (resumed,) = recorded.of(Resumed)
    recorded.wait(
        lambda e: any(isinstance(f, FrameTaken) and f.t >= resumed.t for f in e),
        "a picture after it",
    )
    assert pictures <= whole(recorded)
    hand("type", "--delay", "1", "z")
    recorded.wait(
        lambda e: any(isinstance(k, KeyReleased) and k.key == "z" for k in e), "the last key"
    )
    events = recorded.stop()

    (paused,) = recorded.of(Paused)
    between = [e for e in events if paused.t < e.t < resumed.t]
    assert between == []
    lines = list(written(recorded.folder.events))
    assert lines.index(resumed) == lines.index(paused) + 1
    assert all(f.began >= resumed.t or f.t <= paused.t for f in events if isinstance(f, FrameTaken))
    assert "".join(e.text for e in events if isinstance(e, KeyPressed)) == "beforez"
    named = {f.sha256 for f in events if isinstance(f, FrameTaken)}
    assert {path.stem for path in recorded.folder.frames.iterdir()} == named


@needs_x
def test_a_pause_that_is_asked_for_while_it_begins_pauses_what_begins_later_too(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Frames.start

    def start(frames: Frames) -> None:
        session = frames._on_loss.__self__  # type: ignore[attr-defined]
        asked = threading.Thread(target=session.pause)
        asked.start()
        asked.join(0.5)  # it waits for the others
        begin(frames)

    monkeypatch.setattr(Frames, "start", start)
    recorded = record()
    until(lambda: recorded.session.state is State.PAUSED, "the pause")
    session = recorded.session
    until(lambda: not session._input._listening, "the mouse and the keys to be paused")


@needs_x
def test_what_runs_is_seen_on_the_screen_and_not_in_the_pictures(
    record: Record, hand: Hand, screen: str, terminal: str
) -> None:
    recorded = record()
    until(lambda: colour(screen, 600, 1) == (0xD8, 0x1E, 0x2C), "the red strip")
    hand("key", "ctrl+alt+p")
    until(lambda: colour(screen, 600, 1) == (0xF0, 0xA4, 0x00), "the amber strip")
    hand("key", "ctrl+alt+p")
    until(lambda: colour(screen, 600, 1) == (0xD8, 0x1E, 0x2C), "the red strip again")
    hand("key", "a")
    recorded.wait(lambda e: any(isinstance(k, KeyReleased) for k in e), "the key")
    events = recorded.stop()
    until(lambda: colour(screen, 600, 1) != (0xD8, 0x1E, 0x2C), "no strip after the end")
    last = [e for e in events if isinstance(e, FrameTaken)][-1]
    with Image.open(recorded.folder.frames / f"{last.sha256}.png") as picture:
        edge = [picture.getpixel((600, y)) for y in range(5)]
    assert len(set(edge)) == 1 and edge[0] != (0xD8, 0x1E, 0x2C)


@needs_x
def test_the_sign_lets_clicks_through(record: Record, hand: Hand, screen: str) -> None:
    record()
    until(lambda: colour(screen, 600, 1) == (0xD8, 0x1E, 0x2C), "the red strip")
    hand("mousemove", "600", "1")
    connection = display.Display(screen)
    child = connection.screen().root.query_pointer().child
    assert not child or child.get_wm_class() is None
    connection.close()


@needs_x
def test_the_hotkey_ends_a_recording(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand("key", "ctrl+alt+s")
    assert recorded.session.stopped.wait(20)
    events = recorded.stop()
    assert isinstance(events[-1], Stopped)
    assert recorded.troubles == []


@needs_x
def test_a_recording_names_no_person_and_no_computer(record: Record, hand: Hand) -> None:
    import getpass
    import socket

    recorded = record()
    recorded.stop()
    head = json.loads((recorded.folder.path / "recording.json").read_text())
    assert re.fullmatch("[0-9a-f]{32}", head["id"])
    assert head["screen"] == {
        "width": 1280, "height": 720, "monitors": [[0, 0, 1280, 720]], "scale": 1.0,
    }  # fmt: skip
    text = json.dumps(head)
    assert socket.gethostname() not in text and f'"{getpass.getuser()}"' not in text
    assert recorded.folder.path.stat().st_mode & 0o077 == 0


@needs_x
def test_trouble_with_the_disk_pauses_and_is_told(
    record: Record, hand: Hand, terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record()
    recorded.wait(lambda e: any(isinstance(f, FrameTaken) for f in e), "the first picture")

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("recorder.spool.writing.write_durably", full)
        hand("type", "--delay", "1", "more")
        hand("key", "Return")
        until(lambda: recorded.session.state is State.PAUSED, "the pause")
    assert "the disk takes nothing more (No space left on device)" in recorded.troubles[0]

    def goes_on() -> bool:
        """Another picture of before may pause it once more."""
        recorded.session.resume()
        hand("key", "y")
        return any(isinstance(k, KeyReleased) and k.key == "y" for k in recorded.events())

    until(goes_on, "a key after it")


@pytest.mark.parametrize(
    ("environment", "platform", "said"),
    [
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, "linux", "Wayland session"),
        ({"DISPLAY": ":0", "XDG_SESSION_TYPE": "wayland"}, "linux", "named Xorg"),
        ({}, "linux", "DISPLAY is not set"),
        ({}, "win32", "Windows can't be recorded yet"),
        ({}, "darwin", "macOS can't be recorded yet"),
    ],
)
def test_what_can_not_be_recorded_is_refused_plainly(
    environment: dict[str, str], platform: str, said: str
) -> None:
    with pytest.raises(CaptureError, match=said):
        display_to_record(environment, platform)


def test_a_display_that_is_not_there_is_named(record: Record, tmp_path: Path) -> None:
    from recorder.session import Notices, Session, Wish
    from recorder.spool import Consent, Task

    wish = Wish(":987", tmp_path, Task("", "", ""), "demonstration", Consent("1", 0.0))
    with pytest.raises(CaptureError, match="no X server answers on :987"):
        Session(wish, Notices())
    assert list(tmp_path.iterdir()) == []
