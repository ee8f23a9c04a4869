"""Reads a recording as a stream: two hours take no more memory than two minutes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from recorder.spool.folder import Folder, SpoolError
from trajectory.recording import Committed, Event, EventError, KeyPressed, from_line

# A piece of sound is written when it ends and stands at its beginning; pictures wait for their encoder.
_WINDOW_S = 60.0
_LINE = 1 << 20


def events(folder: Folder) -> Iterator[Event]:
    """Yield the events in the order of their time, as far as they were written whole.

    Keys that turned out to be an input method's have no text.
    Raises SpoolError naming the file and the line for one that is no event; the last line of a
    recording that was cut off is left out.
    """
    waiting: list[tuple[float, int, Event]] = []
    newest = 0.0
    taken: list[tuple[float, float]] = []  # by input methods: the keys between these
    for number, event in enumerate(written(folder.events)):
        heapq.heappush(waiting, (event.t, number, event))
        newest = max(newest, event.t)
        if isinstance(event, Committed) and event.since is not None:
            taken = [span for span in taken if span[1] >= waiting[0][0]]
            taken.append((event.since, event.t))
        while waiting and waiting[0][0] < newest - _WINDOW_S:
            yield _told(heapq.heappop(waiting)[2], taken)
    while waiting:
        yield _told(heapq.heappop(waiting)[2], taken)


def _told(event: Event, taken: list[tuple[float, float]]) -> Event:
    """Return an event as it is known by now."""
    if not isinstance(event, KeyPressed):
        return event
    is_taken = any(since <= event.t <= until for since, until in taken)
    return replace(event, text="") if is_taken else event


def written(path: Path) -> Iterator[Event]:
    """Yield the events of a file in the order of writing; raises SpoolError as `events` does."""
    try:
        with path.open("rb") as lines:
            number = 0
            while line := lines.readline(_LINE):
                number += 1
                if not line.endswith(b"\n"):
                    if len(line) == _LINE:
                        raise SpoolError(f"{path}: line {number} is longer than {_LINE} bytes")
                    return
                try:
                    yield from_line(line.decode())
                except (EventError, UnicodeDecodeError) as error:
                    if lines.read(1):
                        raise SpoolError(f"{path}: line {number}: {error}") from None
                    return
    except OSError as error:
        raise SpoolError(f"{path}: {error}") from error
