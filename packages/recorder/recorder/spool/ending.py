"""How a recording ended: by its person, or cut off; and whether it still runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from recorder.spool.folder import Folder, SpoolError
from trajectory.recording import Event, EventError, Stopped, from_line

Ending = Literal["running", "whole", "cut off"]
# After `Stopped` only a word on what was missed may follow.
_TAIL = 64 << 10


def hold(folder: Folder) -> int:
    """Mark a recording as running until the file that is returned is closed, or this process ends.

    Raises SpoolError.
    """
    try:
        held = os.open(folder.path / "recording.json", os.O_RDONLY)
    except OSError as error:
        raise SpoolError(f"{folder.path}: {error}") from error
    with suppress(OSError):  # a file system without locks: then nobody knows that it runs
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return held


def ending(folder: Folder) -> Ending:
    """Return how a recording ended; a killed recorder, a power cut and a full disk leave one cut off.

    Raises SpoolError where it can't be read.
    """
    if _held(folder):
        return "running"
    return "whole" if any(isinstance(event, Stopped) for event in _last(folder)) else "cut off"


def length(folder: Folder) -> float:
    """Return the time of the last event, in seconds; 0 where there is none. Raises SpoolError."""
    return max((event.t for event in _last(folder)), default=0.0)


def _held(folder: Folder) -> bool:
    try:
        with (folder.path / "recording.json").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                return False
            return False
    except OSError as error:
        raise SpoolError(f"{folder.path}: {error}") from error


def _last(folder: Folder) -> Iterator[Event]:
    """Yield the last events as far as they are whole."""
    try:
        with folder.events.open("rb") as file:
            start = max(0, os.fstat(file.fileno()).st_size - _TAIL)
            file.seek(start)
            lines = file.read(_TAIL).split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise SpoolError(f"{folder.events}: {error}") from error
    for line in lines[1 if start else 0 : -1]:  # the first may be half a line, the last is torn
        with suppress(EventError, UnicodeDecodeError):
            yield from_line(line.decode())
