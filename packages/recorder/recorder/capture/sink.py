"""The gate that all capture goes through: while it is shut, nothing passes."""

from __future__ import annotations

import threading
from pathlib import Path

from recorder.capture.clock import Clock
from recorder.spool import Folder, Spool
from trajectory.recording import Event, FrameTaken, Missed, Paused, Resumed, Stopped


class Sink:
    """Hands events to the spool. Thread-safe; every listener of a recording has the same one.

    Shut, it drops whatever comes; opened again, it drops what happened while it was shut and was
    only told late. So no event lies between `Paused` and `Resumed`, neither by its place nor by its time.
    """

    def __init__(self, spool: Spool, folder: Folder, clock: Clock) -> None:
        self._spool, self.folder, self.clock = spool, folder, clock
        self._lock = threading.Lock()
        self._since = 0.0
        self._open = True

    def put(self, event: Event, path: Path | None = None, data: bytes = b"") -> bool:
        """Record an event, and the file that belongs to it; False if the gate did not let it pass."""
        began = event.began if isinstance(event, FrameTaken) else event.t
        with self._lock:
            if not self._open or began < self._since:
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
            self._open = False
            self._spool.put(Paused(self.clock.now()))
            return True

    def reopen(self) -> bool:
        with self._lock:
            if self._open:
                return False
            self._since = self.clock.now()
            self._open = True
            self._spool.put(Resumed(self._since))
            return True
