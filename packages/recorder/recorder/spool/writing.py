"""Writes events as they come, in a thread of its own: capture never waits for a disk.

A line is appended whole or not at all, and a picture or a piece of sound is on the disk before the
line that names it. What could not be written is told, and stands in the recording as `Missed`.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recorder.spool.folder import Folder, SpoolError, write_durably
from trajectory.recording import (
    AudioWritten,
    Event,
    FrameTaken,
    Missed,
    Paused,
    Resumed,
    Stopped,
    to_line,
)

_QUEUE = 20_000
_WAITING_BYTES = 64 << 20
# A killed program loses nothing that was written; a power cut loses at most this much.
_SYNC_S = 1.0
# Room for the last words on a full disk: what was missed, and that the recording is paused.
_RESERVE = 64 * 1024
_CLOSE_S = 30.0
_SLOW = "the disk was slower than what happened"
_STREAMS: dict[type[Event], str] = {FrameTaken: "frames", AudioWritten: "audio"}


class _Item(NamedTuple):
    event: Event
    path: Path | None  # of a file that must be there before the line
    data: bytes


class Spool:
    """Appends to `events.jsonl` of one recording.

    `on_trouble(what)` is called, from the writer's thread, when something could not be written.
    Raises SpoolError where the folder can't be written at all.
    """

    def __init__(self, folder: Folder, *, on_trouble: Callable[[str], None]) -> None:
        self._folder, self._on_trouble = folder, on_trouble
        self._queue: queue.Queue[_Item | None] = queue.Queue()
        self._waiting = 0  # bytes of files in the queue
        self._lost: Missed | None = None
        self._overflow: Missed | None = None
        self._lock = threading.Lock()
        self._reserve = folder.path / ".reserve"
        try:
            self._file = os.open(folder.events, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._reserve.write_bytes(b"\0" * _RESERVE)
        except OSError as error:
            raise SpoolError(f"{folder.path}: {error}") from error
        self._synced, self._dirty = time.monotonic(), False
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def put(self, event: Event, path: Path | None = None, data: bytes = b"") -> None:
        """Hand over an event, and the file that belongs to it; never waits.

        What there is no room for is missed, but never the words that say how to read the others.
        """
        with self._lock:
            full = self._queue.qsize() >= _QUEUE or self._waiting + len(data) > _WAITING_BYTES
            if full and not isinstance(event, Paused | Resumed | Missed | Stopped):
                before = self._overflow
                what = _STREAMS.get(type(event), "all")
                if before is not None and before.what != what:
                    what = "all"
                since = before.since if before else event.t
                self._overflow = Missed(max(event.t, since), since, what, _SLOW)
                return
            self._queue.put(_Item(event, path, data))
            self._waiting += len(data)

    def close(self) -> None:
        """Write what is still waiting and give the disk back; raises SpoolError if it hangs."""
        self._queue.put(None)
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            raise SpoolError(f"{self._folder.path}: the disk does not answer")

    def _run(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=_SYNC_S if self._dirty else None)
            except queue.Empty:
                self._sync()
                continue
            if item is None:
                break
            self._note_overflow()
            with self._lock:
                self._waiting -= len(item.data)
            try:
                self._save(item)
            except OSError as error:
                self._lose(item.event, error)
            if self._dirty and time.monotonic() - self._synced > _SYNC_S:
                self._sync()
        self._finish()

    def _save(self, item: _Item) -> None:
        if self._lost is not None:
            self._append(self._lost)
            self._lost = None
        if item.path is not None and not item.path.exists():
            write_durably(item.path, item.data)
        if isinstance(item.event, FrameTaken) and not self._has(item.event):
            return  # a picture that was shown again, and could not be written when it was new
        self._append(item.event)

    def _has(self, frame: FrameTaken) -> bool:
        return (self._folder.frames / f"{frame.sha256}.png").exists()

    def _append(self, event: Event) -> None:
        line = to_line(event).encode() + b"\n"
        end = os.fstat(self._file).st_size
        done = 0
        try:
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, end)
            raise
        self._dirty = True

    def _lose(self, event: Event, error: OSError) -> None:
        first = self._lost is None or isinstance(event, Resumed)
        t = event.t
        since = self._lost.since if self._lost else t
        cause = error.strerror or repr(error)
        self._lost = Missed(t=max(t, since), since=since, what="all", cause=f"disk: {cause}")
        self._reserve.unlink(missing_ok=True)
        if first:
            self._on_trouble(f"the disk takes nothing more ({cause})")

    def _note_overflow(self) -> None:
        with self._lock:
            overflow, self._overflow = self._overflow, None
        if overflow is not None:
            with suppress(OSError):
                self._append(overflow)

    def _sync(self) -> None:
        try:
            os.fdatasync(self._file)
        except OSError as error:
            self._on_trouble(f"the disk does not keep what is written ({error.strerror})")
        self._synced, self._dirty = time.monotonic(), False

    def _finish(self) -> None:
        self._reserve.unlink(missing_ok=True)
        with suppress(OSError):
            if self._lost is not None:
                self._append(self._lost)
        self._note_overflow()
        self._sync()
        os.close(self._file)
