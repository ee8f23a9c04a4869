"""What breaks while a recording is made: nobody vouches for a field then, and who records is told."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jeepney import HeaderFields, Message
from Xlib import display
from Xlib.ext import randr

from recorder.capture.a11y import elements as elements_module
from recorder.capture.a11y.bus import Bus
from recorder.capture.a11y.elements import Elements
from recorder.capture.a11y.tree import Tree
from recorder.capture.clock import Clock, ServerTime
from recorder.capture.sink import Sink
from recorder.capture.x11.frames import Frames
from recorder.capture.x11.keys import Keys
from recorder.capture.x11.windows import Front, Windows
from recorder.spool import Folder, Spool, events
from tests.recorder.conftest import Hand, Recorded, needs_x, x_server
from tests.recorder.test_spool import HEAD
from tests.waiting import until
from trajectory.recording import ElementSeen, FrameTaken, Missed, WindowChanged

PLACE = (0, 0, 900, 600)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    folder = Folder.make(tmp_path, HEAD)
    spool = Spool(folder, on_trouble=print)
    yield Sink(spool, folder, Clock())
    spool.close()


class Silent:
    """A bus on which nobody answers, and which breaks when it is told to."""

    made: list[Silent]

    def __init__(self) -> None:
        self._ours, self.its = socket.socketpair()
        self.signals: deque[Message] = deque()
        self.dropped = False
        self.made.append(self)

    def listen(self, event: str) -> None: ...

    def fileno(self) -> int:
        return self._ours.fileno()

    def drain(self) -> None:
        self._ours.setblocking(False)
        try:
            if not self._ours.recv(1):
                raise EOFError
        except BlockingIOError:
            return

    def ask(self, messages: list[Message], deadline: float) -> list[None]:
        return [None] * len(messages)

    def close(self) -> None:
        self._ours.close()


def unknown(sink: Sink) -> list[ElementSeen]:
    """Return each time that nobody was told to have the focus."""
    found = [e for e in events(sink.folder) if isinstance(e, ElementSeen) and e.focused]
    return [e for e in found if e.password is None]


def test_when_the_bus_breaks_nobody_vouches_and_the_focus_is_looked_for_again(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Silent, "made", [], raising=False)
    monkeypatch.setattr(elements_module, "Bus", Silent)
    monkeypatch.setattr(elements_module, "_RETRIES_S", ())
    monkeypatch.setattr(elements_module, "_AGAIN_S", 0.1)
    elements = Elements(sink, SimpleNamespace(pid=lambda: 0))  # type: ignore[arg-type]
    elements.start()
    try:
        until(lambda: Silent.made, "the bus")
        elements.front(Front(7, "gedit", "a", 4711, PLACE))
        until(lambda: len(unknown(sink)) == 1, "word of the focus")
        Silent.made[0].its.close()
        until(lambda: len(Silent.made) == 2, "another bus")
        until(lambda: len(unknown(sink)) >= 3, "word when it broke and when it was there again")
    finally:
        elements.stop()


def test_a_focus_of_which_nobody_says_in_time_whose_it_is_is_looked_for(sink: Sink) -> None:
    class Late(Silent):
        made: list[Silent] = []
        answers: list[Any] = [None, (4711,)]

        def ask(self, messages: list[Message], deadline: float) -> list[Any]:
            return [self.answers.pop(0) for _ in messages]

    bus: Any = Late()
    tree = Tree(bus)
    elements = Elements(sink, SimpleNamespace(pid=lambda: 0))  # type: ignore[arg-type]
    elements._tree, elements._wake = tree, os.eventfd(0, os.EFD_NONBLOCK)
    elements._front = front = Front(7, "gedit", "a", 4711, PLACE)
    fields = {HeaderFields.sender: ":1.5", HeaderFields.path: "/a"}
    elements._on_focus(SimpleNamespace(body=("focused", 1), header=SimpleNamespace(fields=fields)))
    assert [asked[1] for asked in elements._asked] == [front]
    assert tree.pid(":1.5", time.monotonic() + 1) == 4711
    os.close(elements._wake)
    bus.close()


def test_a_signal_that_finds_no_room_is_known() -> None:
    bus = Bus.__new__(Bus)
    bus.signals, bus.dropped = deque(maxlen=200), False
    signal: Any = SimpleNamespace(header=SimpleNamespace(message_type=4))
    from jeepney import MessageType

    signal.header.message_type = MessageType.signal
    for _ in range(200):
        bus._take(signal)
    assert not bus.dropped
    bus._take(signal)
    assert bus.dropped


class Desktop:
    """A browser with two windows, each with a page; answers what `Tree` asks."""

    def __init__(self) -> None:
        self.active = "/a"
        self.pages = {"/a": "https://news.example/", "/b": "https://bank.example/"}

    def ask(self, messages: list[Message], deadline: float) -> list[Any]:
        return [self._answer(m) for m in messages]

    def _answer(self, message: Message) -> Any:
        fields = message.header.fields
        path, member = str(fields[HeaderFields.path]), str(fields[HeaderFields.member])
        if member == "GetChildren":
            if path.endswith("/root"):
                programs = str(fields[HeaderFields.destination]).endswith("Registry")
                children = [(":1.5", f"{path}")] if programs else [(":1.5", "/a"), (":1.5", "/b")]
            else:
                children = [(":1.5", f"{path}/page")] if path in self.pages else []
            return (children,)
        if member == "GetConnectionUnixProcessID":
            return (4711,)
        if member == "GetState":
            return ([1 << 25 | (1 << 1 if path == self.active else 0), 0],)
        if member == "GetRoleName":
            return ("document web" if path.endswith("/page") else "frame",)
        assert member == "GetAttributeValue"
        return (self.pages[path.removesuffix("/page")],)


def test_the_address_is_that_of_the_window_in_front() -> None:
    desktop = Desktop()
    tree = Tree(desktop)  # type: ignore[arg-type]

    def page() -> str:
        return tree.page(4711, time.monotonic() + 60)

    assert page() == "https://news.example/" == page()
    desktop.active = "/b"  # the other one still shows its page beside it
    assert page() == "https://bank.example/"


def test_a_browser_that_is_busy_shows_the_page_that_it_showed(sink: Sink) -> None:
    told, title = ["https://bank.example/", "", "", "https://news.example/"], ["a"]

    class One(Windows):
        def _front(self) -> Front:
            return Front(7, "firefox", title[0], 0, PLACE)

        def _watch(self, window_id: int) -> None: ...

    windows = One(":0", sink, describe=lambda _: told.pop(0), letters=[], on_loss=print)
    windows._look()
    windows._look()
    title[0] = "b"
    windows._look()
    windows._look()

    def addresses() -> list[str]:
        return [e.url for e in events(sink.folder) if isinstance(e, WindowChanged)]

    until(lambda: len(addresses()) >= 3, "the windows")
    assert addresses() == ["https://bank.example/", "", "https://news.example/"]


@needs_x
def test_a_listener_that_breaks_ends_the_recording_and_is_told_without_its_words(
    record: Callable[..., Recorded], hand: Hand, terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record()

    def breaks(*_: object) -> None:
        raise ValueError("hunter2")

    monkeypatch.setattr(Keys, "pressed", breaks)
    hand("key", "a")
    assert recorded.session.stopped.wait(60)
    missed = [e for e in recorded.stop() if isinstance(e, Missed)]
    assert any("mouse and keys" in e.cause for e in missed)
    assert "hunter2" not in recorded.folder.events.read_text() + "".join(recorded.troubles)


@needs_x
def test_a_screen_that_is_made_smaller_under_a_grab_is_seen_anew(sink: Sink) -> None:
    losses: list[str] = []
    with x_server() as (name, _):
        connection = display.Display(name)
        root = connection.screen().root
        frames = Frames(name, sink, ServerTime(sink.clock, lambda: 0), on_loss=losses.append)
        frames.start()
        info: Any = randr.get_screen_info(root)
        sizes = [(s["width_in_pixels"], s["height_in_pixels"]) for s in info.sizes]
        with frames._lock:  # nothing was read of it when the picture is taken
            randr.set_screen_config(root, sizes.index((800, 600)), 1, info.config_timestamp)
            connection.sync()
            frames._read_events = lambda: None  # type: ignore[method-assign]
            frames._grab()
            del frames._read_events
            frames._keep_newest()
        until(
            lambda: (800, 600) in {
                (e.width, e.height) for e in events(sink.folder) if isinstance(e, FrameTaken)
            },
            "a picture of the smaller screen",
        )  # fmt: skip
        frames.stop()
        connection.close()
    assert losses == []
