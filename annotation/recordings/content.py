"""What the files of a recording say: read line by line, every line checked. Pure but for the files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.speech import Word
from annotation import storable
from annotation.recordings.errors import BadContent
from trajectory.recording import (
    AudioWritten,
    ClockRead,
    Event,
    EventError,
    Missed,
    Resumed,
    from_line,
)

LINE_CHARACTERS = 1 << 20
WHY_CHARACTERS = 300  # an error may quote what it found, and that may be long
STEPS = 20_000
WORDS = 200_000
SOUNDS = 100_000
HELD_BYTES = 64 << 20  # of a file whose lines are held all at once
LONGEST_S = 24 * 3600.0
BACK_S = 1.0  # threads of a recorder may write their events a little out of order
SILENT_S = 3600.0  # nobody records an hour in which not even the clock was read
WAY_OUT = "export the recording again with the newest recorder; what was sent is kept"


@dataclass(slots=True)
class Events:
    """What the stream of events says as a whole; `sounds` maps a file's name to its event."""

    count: int = 0
    ended: float = 0.0
    sounds: dict[str, AudioWritten] = field(default_factory=dict)
    drift_s: float = 0.0  # how far wall clock and recorder's clock moved apart


@dataclass(frozen=True, slots=True)
class Line:
    """One step as it was written."""

    index: int
    began: float
    ended: float
    action: dict[str, Any]
    frame: str
    element: dict[str, Any] | None
    window: dict[str, str]


def events(path: Path) -> Events:
    """Read events.jsonl whole without holding it; raises BadContent naming the line."""
    found, before, wall = Events(), 0.0, None
    for number, event in _events(path):
        found.count += 1
        t = event.t
        if not 0 <= t <= LONGEST_S:
            raise _bad(
                path, number, f"t is {t:g} s: a recording begins at 0 and lasts at most a day"
            )
        if t < before - BACK_S:
            raise _bad(path, number, f"the clock jumps back from {before:.3f} s to {t:.3f} s")
        if t > before + SILENT_S and not isinstance(event, (Missed, Resumed)):
            raise _bad(
                path, number, f"the clock jumps from {before:.0f} s to {t:.0f} s without a pause"
            )
        before = max(before, t)
        match event:
            case AudioWritten(name=name):
                found.sounds[name] = event
                if len(found.sounds) > SOUNDS:
                    raise _bad(path, number, f"more than {SOUNDS} sounds")
            case ClockRead(wall=now):
                wall = now - t if wall is None else wall
                found.drift_s = now - t - wall
            case _:
                pass
    if not found.count:
        raise BadContent(f"{path.name} holds no event: {WAY_OUT}")
    found.ended = before
    return found


def steps(path: Path) -> list[Line]:
    """Read steps.jsonl; raises BadContent naming the line."""
    found: list[Line] = []
    before = 0.0
    for number, record in _records(path):
        if len(found) >= STEPS:
            raise _bad(path, number, f"more than {STEPS} steps")
        began, ended = _time(path, number, record, "began"), _time(path, number, record, "ended")
        if ended < began or began < before - BACK_S:
            raise _bad(path, number, "the steps are not in order of time")
        before = max(before, began)
        action, frame = record.get("action"), record.get("frame") or ""
        if not isinstance(action, dict) or not isinstance(frame, str):
            raise _bad(path, number, "a step has an action and the sha256 of its frame")
        element, window = record.get("element"), record.get("window")
        found.append(
            Line(
                len(found), began, ended, action, frame,
                _element(element) if isinstance(element, dict) else None,
                {k: str(window.get(k) or "")[:500] for k in ("app", "title", "url")}
                if isinstance(window, dict)
                else {},
            )
        )  # fmt: skip
    if not found:
        raise BadContent(f"{path.name} holds no step: there is nothing to learn from")
    return found


def words(path: Path) -> tuple[list[Word], list[bool]]:
    """Read words.jsonl: the words in order, and of each whether a person wrote or corrected it."""
    found: list[Word] = []
    by_person: list[bool] = []
    for number, record in _records(path):
        if len(found) >= WORDS:
            raise _bad(path, number, f"more than {WORDS} words")
        began, ended = _time(path, number, record, "began"), _time(path, number, record, "ended")
        text = record.get("text")
        if not isinstance(text, str) or ended < began:
            raise _bad(path, number, "a word has a text and ends after it began")
        sure = record.get("confidence", 1.0)
        ok = isinstance(sure, (int, float)) and 0 <= sure <= 1
        if text.strip():
            found.append(Word(text.strip()[:2000], began, ended, float(sure) if ok else 1.0))
            by_person.append(record.get("by") == "person")
    return found, by_person


def _events(path: Path) -> Iterator[tuple[int, Event]]:
    for number, line in _lines(path):
        try:
            yield number, from_line(line)
        except (EventError, RecursionError) as error:
            raise _bad(path, number, str(error)) from None


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if (size := path.stat().st_size) > HELD_BYTES:
        raise BadContent(f"{path.name} has {size} bytes, more than {HELD_BYTES}; {WAY_OUT}")
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise _bad(path, number, "no JSON") from None
        if not isinstance(record, dict):
            raise _bad(path, number, "no object")
        if why := storable.wrong(record):
            raise _bad(path, number, why)
        yield number, record


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    with path.open("rb") as file:
        while line := file.readline(LINE_CHARACTERS):
            number += 1
            if len(line) == LINE_CHARACTERS and not line.endswith(b"\n"):
                raise _bad(path, number, f"longer than {LINE_CHARACTERS} bytes")
            if not line.strip():
                continue
            try:
                yield number, line.decode()
            except UnicodeDecodeError:
                raise _bad(path, number, "no UTF-8") from None


def _time(path: Path, number: int, record: dict[str, Any], name: str) -> float:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _bad(path, number, f"{name} must be a number of seconds")
    if not 0 <= value <= LONGEST_S:
        raise _bad(path, number, f"{name} is {value:g} s: a recording lasts at most a day")
    return float(value)


def _element(record: dict[str, Any]) -> dict[str, Any]:
    bounds = record.get("bounds")
    whole = (
        isinstance(bounds, list)
        and len(bounds) == 4
        and all(isinstance(n, int) and not isinstance(n, bool) and abs(n) < 1 << 31 for n in bounds)
    )
    return {
        "role": str(record.get("role") or "")[:60],
        "name": str(record.get("name") or "")[:300],
        "bounds": bounds if whole else None,
    }


def _bad(path: Path, number: int, why: str) -> BadContent:
    return BadContent(f"{path.name}, line {number}: {why[:WHY_CHARACTERS]}; {WAY_OUT}")
