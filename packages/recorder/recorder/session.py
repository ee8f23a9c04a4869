"""One recording from its start to its stop: what listens, the pause that pauses everything, the sign."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from Xlib import error

from recorder.capture.a11y.elements import Elements, Pages
from recorder.capture.clock import Clock
from recorder.capture.errors import CaptureError
from recorder.capture.listener import Listener
from recorder.capture.sink import STOOD_S, Sink
from recorder.capture.sound import Level, Sound
from recorder.capture.x11.displays import screen_of
from recorder.capture.x11.frames import Frames
from recorder.capture.x11.input import Act, Input
from recorder.capture.x11.panel import Controls
from recorder.capture.x11.pointed import Pointed
from recorder.capture.x11.sign import Sign
from recorder.capture.x11.windows import Front, Windows
from recorder.spool import Consent, Folder, Head, Spool, SpoolError, Task, new_id
from recorder.spool.ending import hold
from recorder.spool.folder import Kind
from recorder.version import VERSION
from trajectory.recording import ClockRead, Marked, Missed, Stopped

HOTKEYS = {"p": "pause or go on", "m": "set a marker", "s": "stop"}
"""Letters that, with Ctrl+Alt, do this in any program."""

_TICK_S = 1.0
_COMPARE_S = 5.0
_SLEPT_S = 0.5


class State(Enum):
    RECORDING = "recording"
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be recorded. `microphone` is PulseAudio's name of a source, "" its default, None
    for no sound at all; without `window` the strip alone says that it runs."""

    display: str
    root: Path
    task: Task
    kind: Kind
    consent: Consent
    microphone: str | None = None
    window: bool = True


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
        self._sign: Sign | None = None
        self._lost_display = False
        self._failure: SpoolError | None = None
        self._recorded, self._since = 0.0, 0.0
        clock = self._clock = Clock()
        head = Head(
            id=new_id(), kind=wish.kind, task=wish.task, consent=wish.consent, platform="linux-x11",
            screen=screen_of(wish.display), wall_start=clock.wall_start, recorder_version=VERSION,
        )  # fmt: skip
        self.folder = Folder.make(wish.root, head)
        self._listeners: list[Listener] = []
        try:
            self._running = hold(self.folder)
            self._spool = Spool(self.folder, on_trouble=self._on_trouble)
            self._sink = Sink(self._spool, self.folder, clock)
            with self._lock:  # who pauses or stops waits until all of it listens
                try:
                    self._listen(wish)
                except (
                    CaptureError,
                    error.XError,
                    error.ConnectionClosedError,
                    OSError,
                ) as failure:
                    self.state = State.STOPPED
                    self.stopped.set()
                    self._end()
                    if isinstance(failure, CaptureError):
                        raise
                    raise CaptureError(f"the recording can't begin: {failure}") from failure
        except (CaptureError, SpoolError):
            self.folder.delete()
            raise
        self._ticks = threading.Thread(target=self._tick, name="clock", daemon=True)
        self._ticks.start()

    def recorded(self) -> float:
        """Return how much is recorded by now, pauses left out, in seconds."""
        going = self.state is State.RECORDING
        return self._recorded + (self._clock.now() - self._since if going else 0.0)

    def pause(self) -> None:
        """Record nothing from here on: no key, picture, title or sound."""
        with self._lock:
            if self.state is not State.RECORDING:
                return
            self._sink.shut()
            self._recorded = self.recorded()
            for listener in self._listeners:
                listener.pause()
            self._become(State.PAUSED)

    def resume(self) -> None:
        with self._lock:
            if self.state is not State.PAUSED:
                return
            self._since = self._clock.now()
            self._become(State.RECORDING)
            self._sink.reopen()
            self._go_on()

    def mark(self, note: str = "") -> None:
        """Remember this moment; during a pause nothing is remembered."""
        if self._sink.put(Marked(self._clock.now(), note)) and self._sign:
            self._sign.note("Marker set")

    def stop(self) -> None:
        """End the recording; it lies whole in `folder` afterwards. Raises SpoolError, each time."""
        with self._lock:
            if self.state is not State.STOPPED:
                self._recorded = self.recorded()
                self._become(State.STOPPED)
                self.stopped.set()
                try:
                    self._end()
                except SpoolError as failure:
                    self._failure = failure
            if self._failure is not None:
                raise self._failure

    def _listen(self, wish: Wish) -> None:
        name = wish.display
        stop = _apart(self._stop_quietly)
        self._sign = Sign(name, self._controls(wish, stop) if wish.window else None)
        self._elements = Elements(self._sink, Pointed(name))
        pages = Pages()

        def describe(front: Front) -> str:
            self._elements.front(front)
            return pages.url(front)

        hotkeys = {"p": self._toggle_now, "m": self.mark, "s": stop}
        self._input = Input(
            name,
            self._sink,
            on_act=self._on_act,
            on_key=self._elements.typed,
            hotkeys=hotkeys,
            on_loss=self._on_loss,
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
                    self._sink, source=wish.microphone or None, on_level=self._on_level,
                    on_loss=self._notices.trouble,
                )
            )  # fmt: skip
        self._read_clock()
        for listener in listeners:
            listener.start()
            self._listeners.append(listener)
            self._sink.beat()

    def _toggle_now(self) -> None:
        """Called between two keys: if this begins a pause, the next one is not recorded any more.

        What it does is settled here: a pause that trouble begins meanwhile is not ended by it.
        """
        if self.state is State.RECORDING:
            self._sink.shut()
            _apart(self.pause)()
        else:
            _apart(self.resume)()

    def _controls(self, wish: Wish, stop: Callable[[], None]) -> Controls:
        screen = self.folder.head().screen
        do = {"pause": self._toggle_now, "mark": self.mark, "stop": stop}
        return Controls(
            self._sink.own, self._clock, do, self.recorded,
            home=screen.monitors[0], scale=screen.scale, listening=wish.microphone is not None,
        )  # fmt: skip

    def _on_level(self, level: Level) -> None:
        if self._sign:
            self._sign.hear(level)
        self._notices.level(level)

    def _on_act(self, act: Act, t: float, x: int, y: int) -> None:
        if act != "key" and self._sink.own.meant(t, x, y):
            return
        self._frames.before(t)
        if act == "press":
            self._elements.pressed(t, x, y)

    def _become(self, state: State) -> None:
        self.state = state
        if self._sign:
            self._sign.show(state.value if state is not State.STOPPED else "")
        self._notices.state(state)

    def _on_trouble(self, what: str) -> None:
        self._notices.trouble(f"{what}: the recording is paused")
        if self._sign:
            self._sign.note(f"Paused: {what}", until_changed=True)
        _apart(self.pause)()

    def _on_loss(self, what: str) -> None:
        if self.stopped.is_set() or self._lost_display:
            return
        self._lost_display = True
        self._notices.trouble(f"{what}: the recording is stopped")
        now = self._clock.now()
        self._sink.tell(Missed(now, now, "all", what))
        _apart(self._stop_quietly)()

    def _stop_quietly(self) -> None:
        """Stop in a thread that nobody waits for: what fails is told by `stop`."""
        with suppress(SpoolError):
            self.stop()

    def _tick(self) -> None:
        before = compared = self._clock.now()
        while not self.stopped.wait(_TICK_S):
            now, slept = self._clock.now(), self._clock.slept()
            if slept > _SLEPT_S:
                self._begin_anew(before, f"the computer slept for {slept:.0f} s")
            elif now - before > STOOD_S:
                self._begin_anew(before, f"the recorder stood still for {now - before:.0f} s")
            before = self._clock.now()
            self._sink.beat()
            if self.state is State.RECORDING and now - compared >= _COMPARE_S:
                compared = now
                with suppress(CaptureError, error.ConnectionClosedError, OSError):
                    self._input.compare()
                self._read_clock()

    def _begin_anew(self, since: float, cause: str) -> None:
        """Say that all from `since` to now was missed; what is told of it late is not recorded.

        Somebody may have typed a password meanwhile, and nobody was there to see into which field.
        """
        with self._lock:
            if self.state is not State.RECORDING:
                self._sink.tell(Missed(self._clock.now(), since, "all", cause))
                return
            self._sink.stand(since)
            for listener in self._listeners:
                listener.pause()
            self._sink.go_on(since, cause)
            self._go_on()
            self._notices.trouble(f"{cause}: nothing of that is recorded")

    def _go_on(self) -> None:
        """Listen again; what can't any more ends the recording, and is told."""
        for listener in self._listeners:
            try:
                listener.resume()
            except (CaptureError, error.XError, error.ConnectionClosedError, OSError) as failure:
                self._on_loss(f"{type(listener).__name__} can't go on ({failure})")

    def _read_clock(self) -> None:
        server = self._input.time
        now = ClockRead(self._clock.now(), time.time(), server.skew, server.uncertain)
        self._sink.put(now)

    def _end(self) -> None:
        for listener in reversed(self._listeners):
            try:
                if self._lost_display:
                    listener.pause()  # so that it asks a display that is gone for nothing more
                listener.stop()
            except Exception as failure:  # the others, and the end itself, are written all the same
                self._notices.trouble(f"{type(listener).__name__} did not end well: {failure!r}")
        if self.state is State.STOPPED:
            self._sink.tell(Stopped(self._clock.now()))
        if self._sign:
            self._sign.close()
        try:
            self._spool.close()
        finally:
            os.close(self._running)


def _apart(action: Callable[[], None]) -> Callable[[], None]:
    """Return what does `action` in a thread of its own: it waits for the thread that asks for it."""
    return lambda: threading.Thread(target=action, name="hotkey").start()
