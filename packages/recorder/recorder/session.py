"""One recording from its start to its stop: what listens, the pause that pauses everything, the sign."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from recorder.capture.a11y.elements import Elements, Pages
from recorder.capture.clock import Clock
from recorder.capture.errors import CaptureError
from recorder.capture.listener import Listener
from recorder.capture.sink import Sink
from recorder.capture.sound import Level, Sound
from recorder.capture.x11.displays import screen_of
from recorder.capture.x11.frames import Frames
from recorder.capture.x11.input import Act, Input
from recorder.capture.x11.pointed import Pointed
from recorder.capture.x11.sign import Sign
from recorder.capture.x11.windows import Front, Windows
from recorder.spool import Consent, Folder, Head, Spool, Task, new_id
from recorder.spool.folder import Kind
from recorder.version import VERSION
from trajectory.recording import ClockRead, Marked, Missed, Stopped

HOTKEYS = {"p": "pause or go on", "m": "set a marker", "s": "stop"}
"""Letters that, with Ctrl+Alt, do this in any program."""

_TICK_S = 5.0
_SLEPT_S = 0.5


class State(Enum):
    RECORDING = "recording"
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be recorded. `microphone` is PulseAudio's name of a source, "" its default, None
    for no sound at all."""

    display: str
    root: Path
    task: Task
    kind: Kind
    consent: Consent
    microphone: str | None = None


@dataclass
class Notices:
    """Who is told: of another state, of the voice's level, and of trouble in plain words.

    Called from threads of the recording.
    """

    state: Callable[[State], None] = field(default=lambda _: None)
    level: Callable[[Level], None] = field(default=lambda _: None)
    trouble: Callable[[str], None] = field(default=lambda _: None)


class Session:
    """A running recording. Raises CaptureError or SpoolError where it can't begin."""

    def __init__(self, wish: Wish, notices: Notices) -> None:
        self._notices = notices
        self._lock = threading.RLock()
        self.state = State.RECORDING
        self.stopped = threading.Event()
        clock = self._clock = Clock()
        head = Head(
            id=new_id(), kind=wish.kind, task=wish.task, consent=wish.consent, platform="linux-x11",
            screen=screen_of(wish.display), wall_start=clock.wall_start, recorder_version=VERSION,
        )  # fmt: skip
        self.folder = Folder.make(wish.root, head)
        self._spool = Spool(self.folder, on_trouble=self._on_trouble)
        self._sink = Sink(self._spool, self.folder, clock)
        self._listeners: list[Listener] = []
        try:
            self._listen(wish)
        except CaptureError:
            self._end()
            self.folder.delete()
            raise
        self._ticks = threading.Thread(target=self._tick, name="clock", daemon=True)
        self._ticks.start()

    def pause(self) -> None:
        """Record nothing from here on: no key, picture, title or sound."""
        with self._lock:
            if self.state is not State.RECORDING:
                return
            self._sink.shut()
            for listener in self._listeners:
                listener.pause()
            self._become(State.PAUSED)

    def resume(self) -> None:
        with self._lock:
            if self.state is not State.PAUSED:
                return
            self._become(State.RECORDING)
            self._sink.reopen()
            for listener in self._listeners:
                listener.resume()

    def toggle(self) -> None:
        with self._lock:
            if self.state is State.PAUSED:
                self.resume()
            else:
                self.pause()

    def mark(self, note: str = "") -> None:
        """Remember this moment; during a pause nothing is remembered."""
        self._sink.put(Marked(self._clock.now(), note))

    def stop(self) -> None:
        """End the recording; it lies whole in `folder` afterwards. Raises SpoolError."""
        with self._lock:
            if self.state is State.STOPPED:
                return
            self._become(State.STOPPED)
            self.stopped.set()
            self._end()

    def _listen(self, wish: Wish) -> None:
        name = wish.display
        self._sign = Sign(name)
        self._elements = Elements(self._sink, Pointed(name))
        pages = Pages()

        def describe(front: Front) -> str:
            self._elements.front(front)
            return pages.url(front)

        hotkeys = {"p": self._toggle_now, "m": self.mark, "s": _apart(self.stop)}
        self._input = Input(
            name, self._sink, on_act=self._on_act, hotkeys=hotkeys, on_loss=self._on_loss
        )
        # The clock of the display is measured by what listens first; pictures are there before the hand.
        self._input.prepare()
        self._frames = Frames(name, self._sink, self._input.time, on_loss=self._on_loss)
        windows = Windows(
            name, self._sink, describe=describe, letters=list(HOTKEYS), on_loss=self._on_loss
        )
        listeners: list[Listener] = [self._elements, self._frames, windows, self._input]
        if wish.microphone is not None:
            listeners.append(
                Sound(
                    self._sink, source=wish.microphone or None, on_level=self._notices.level,
                    on_loss=self._notices.trouble,
                )
            )  # fmt: skip
        self._read_clock()
        for listener in listeners:
            listener.start()
            self._listeners.append(listener)
        self._sign.show("recording")

    def _toggle_now(self) -> None:
        """Called between two keys: if this begins a pause, the next one is not recorded any more."""
        if self.state is State.RECORDING:
            self._sink.shut()
        _apart(self.toggle)()

    def _on_act(self, act: Act, t: float, x: int, y: int) -> None:
        self._frames.before(t)
        if act == "press":
            self._elements.pressed(t, x, y)

    def _become(self, state: State) -> None:
        self.state = state
        self._sign.show(state.value if state is not State.STOPPED else "")
        self._notices.state(state)

    def _on_trouble(self, what: str) -> None:
        self._notices.trouble(f"{what}: the recording is paused")
        _apart(self.pause)()

    def _on_loss(self, what: str) -> None:
        self._notices.trouble(f"{what}: the recording is stopped")
        now = self._clock.now()
        self._sink.tell(Missed(now, now, "all", what))
        _apart(self.stop)()

    def _tick(self) -> None:
        before = self._clock.now()
        while not self.stopped.wait(_TICK_S):
            if (slept := self._clock.slept()) > _SLEPT_S:
                now = self._clock.now()
                self._sink.tell(Missed(now, before, "all", f"the computer slept for {slept:.0f} s"))
            before = self._clock.now()
            if self.state is State.RECORDING:
                with suppress(CaptureError):
                    self._input.compare()
                self._read_clock()

    def _read_clock(self) -> None:
        server = self._input.time
        now = ClockRead(self._clock.now(), time.time(), server.skew, server.uncertain)
        self._sink.put(now)

    def _end(self) -> None:
        for listener in reversed(self._listeners):
            listener.stop()
        if self.state is State.STOPPED:
            self._sink.tell(Stopped(self._clock.now()))
        self._sign.close()
        self._spool.close()


def _apart(action: Callable[[], None]) -> Callable[[], None]:
    """Return what does `action` in a thread of its own: it waits for the thread that asks for it."""
    return lambda: threading.Thread(target=action, name="hotkey").start()
