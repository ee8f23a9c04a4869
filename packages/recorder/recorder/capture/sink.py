"""The gate that all capture goes through: while it is shut, nothing passes."""

from __future__ import annotations

import math
import threading
from pathlib import Path

from recorder.capture.clock import Clock
from recorder.capture.own import Own
from recorder.spool import Folder, Spool
from trajectory.recording import AudioWritten, Event, FrameTaken, Missed, Paused, Resumed, Stopped

STOOD_S = 5.0
"""A recorder that did nothing for longer was stopped, or the computer had no time for it."""


class Sink:
    """Hands events to the spool. Thread-safe; every listener of a recording has the same one.

    Shut, it drops whatever comes; opened again, it drops what happened while it was shut and was
    only told late. So nothing that happened between `Paused` and `Resumed` is kept. Sound is the one
    thing that may come late: what was heard before the pause is whole only then. What the mouse does
    on the recorder's `own` window never passes.
    """

    def __init__(self, spool: Spool, folder: Folder, clock: Clock) -> None:
        self._spool, self.folder, self.clock = spool, folder, clock
        self.own = Own()
        self._lock = threading.Lock()
        self.since, self.until = 0.0, math.inf  # what happened between them may pass
        self._open, self._standing = True, False
        self._alive = clock.now()

    def put(self, event: Event, path: Path | None = None, data: bytes = b"") -> bool:
        """Record an event, and the file that belongs to it; False if the gate did not let it pass."""
        began = event.began if isinstance(event, FrameTaken) else event.t
        with self._lock:
            late = isinstance(event, AudioWritten) and (
                event.t + event.samples / event.rate <= self.until
            )
            passes = self._open and not self._standing
            if passes and self.clock.now() - self._alive > STOOD_S:
                return False  # it comes from a time when nobody was there: see `stand`
            if began < self.since or not (passes or late) or self.own.takes(event):
                return False
            self._spool.put(event, path, data)
            return True

    def tell(self, event: Missed | Stopped) -> None:
        """Record what is said even while the gate is shut: that something is missing, and the end."""
        with self._lock:
            self._spool.put(event)

    def shut(self) -> bool:
        """Record the pause; nothing passes from here on. False if it was shut already."""
        with self._lock:
            if not self._open:
                return False
            self._open, now = False, self.clock.now()
            self.until = min(self.until, now)
            self._spool.put(Paused(now))
            return True

    def reopen(self) -> bool:
        with self._lock:
            if self._open:
                return False
            self.since, self.until = self.clock.now(), math.inf
            self._open = True
            self._alive = self.since
            self.own.forget()
            self._spool.put(Resumed(self.since))
            return True

    def beat(self) -> None:
        """The recorder is there; asked for all the time, nothing passes after STOOD_S without it."""
        with self._lock:
            self._alive = self.clock.now()

    def stand(self, since: float) -> None:
        """Let nothing pass that happened after `since`, when nobody was there, until `go_on`."""
        with self._lock:
            self._standing, self.until = True, min(self.until, since)

    def go_on(self, since: float, cause: str) -> None:
        """Let pass what happens from now on, and record what was missed; a pause goes on."""
        with self._lock:
            self._standing, self.since = False, self.clock.now()
            if self._open:
                self.until, self._alive = math.inf, self.since
            self.own.forget()
            self._spool.put(Missed(self.since, since, "all", cause))
