"""Writes a recording anew without what has to be removed: the same intervals from every stream."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recorder.redact.redactions import Box, Redaction, Spans
from recorder.redact.screen.pictures import painted
from recorder.redact.voice.sound import silenced
from trajectory import recording as rec
from trajectory.recording import Event, to_line

Clean = Callable[[str], str]
_REMEMBERED = 1000  # pictures; one that comes again later is made again
_OVERLAP_S = 60.0  # pictures come in the order of their ends, and one may have begun before another
INPUT = (
    rec.Moved, rec.Pressed, rec.Released, rec.Scrolled, rec.KeyPressed, rec.KeyReleased,
    rec.Committed, rec.Marked,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """A recording to read: its folder, its events in the order of their times, its words.

    `screen` is the size, in pixels, in which places on pictures are told; None for each picture's
    own, which is another one once a monitor was plugged in.
    """

    path: Path
    events: Callable[[], Iterable[Event]]
    words: Sequence[dict[str, Any]]
    screen: tuple[int, int] | None


def apply(source: Source, redactions: Sequence[Redaction], clean: Clean, target: Path) -> None:
    """Write `events.jsonl`, `frames/`, `audio/`, `redactions.jsonl`, and
    `words.jsonl` if there are words, below `target`.

    `clean` returns a title, an address or a name without what must not be seen in it. `target` is
    empty. Raises OSError; RedactionError where sound can't be silenced.
    """
    (target / "frames").mkdir(parents=True)
    (target / "audio").mkdir()
    made = _Pictures(source, redactions, target)
    with (target / "events.jsonl").open("w", encoding="utf-8") as out:
        for event in _kept(source, redactions, clean, made, target):
            out.write(to_line(event) + "\n")
        out.flush()
        os.fsync(out.fileno())
    words = Spans.of(redactions, "words")
    said = [w for w in source.words if not words.hit(float(w["began"]), float(w["ended"]))]
    if said:  # without a transcript of one's own, one is made of the sound later
        write_lines(target / "words.jsonl", said)
    write_lines(target / "redactions.jsonl", (r.to_dict() for r in redactions))


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for line in lines:
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def _kept(
    source: Source, redactions: Sequence[Redaction], clean: Clean, pictures: _Pictures, target: Path
) -> Iterator[Event]:
    spans = {s: Spans.of(redactions, s) for s in ("input", "windows", "elements", "audio")}
    gaps = iter(spans["input"].spans)
    gap = next(gaps, None)
    hidden: rec.WindowChanged | None = None  # the last window that was left out
    down: set[str] = set()  # keys that were left out, and may come up after it
    for event in source.events():
        while gap is not None and gap[1] < event.t:
            yield rec.Missed(gap[1], max(0.0, gap[0]), "input", "redacted")
            if hidden is not None:
                yield replace(hidden, t=gap[1])
                hidden = None
            gap = next(gaps, None)
        match event:
            case rec.WindowChanged(t=t):
                shown = _window(event, clean)
                hidden = shown if spans["windows"].hit(t, t) else None
                if hidden is None:
                    yield shown
            case rec.ElementSeen(t=t):
                if not spans["elements"].hit(t, t):
                    yield replace(event, name=clean(event.name))
            case rec.FrameTaken():
                frame = pictures.take(event)
                if frame is not None:
                    yield frame
            case rec.AudioWritten():
                piece = _sound(event, spans["audio"], source.path, target)
                if piece is not None:
                    yield piece
            case rec.Marked(t=t) if not spans["input"].hit(t, t):
                yield replace(event, note=clean(event.note))
            case rec.Missed():
                yield replace(event, cause=clean(event.cause))
            case rec.KeyPressed(t=t, key=key, repeat=False) if spans["input"].hit(t, t):
                down.add(key)
            case rec.KeyPressed(t=t, key=key) if not spans["input"].hit(t, t):
                down.discard(key)
                yield event
            case rec.KeyReleased(key=key) if key in down:
                down.remove(key)
            case _:
                if not (isinstance(event, INPUT) and spans["input"].hit(event.t, event.t)):
                    yield event


def _window(window: rec.WindowChanged, clean: Clean) -> rec.WindowChanged:
    """Return the window with a clean title, and an address without what may identify somebody."""
    try:
        parts = urlsplit(window.url)
    except ValueError:  # no address: nobody can tell what of it may be seen
        return replace(window, app=clean(window.app), title=clean(window.title), url="")
    url = f"{parts.scheme}://{parts.hostname or ''}{parts.path}" if parts.netloc else ""
    return replace(window, app=clean(window.app), title=clean(window.title), url=clean(url))


def _sound(event: rec.AudioWritten, spans: Spans, source: Path, target: Path) -> Event | None:
    """Copy a piece of sound, silent where it must be; None for one that can't be read."""
    name = Path(event.name).name
    length = event.samples / max(1, event.rate)
    within = [(a - event.t, b - event.t) for a, b in spans.spans
              if b >= event.t - 1 and a <= event.t + length + 1]  # fmt: skip
    try:
        silenced(source / "audio" / name, target / "audio" / name, within, event.rate)
    except (OSError, RuntimeError):
        (target / "audio" / name).unlink(missing_ok=True)
        return rec.Missed(event.t, event.t, "audio", "a piece of sound can't be read")
    return event


class _Pictures:
    """Copies pictures, painted over where something on them must not be seen."""

    def __init__(self, source: Source, redactions: Sequence[Redaction], target: Path) -> None:
        self._source, self._target = source, target
        whole = [r for r in redactions if "frames" in r.streams and r.place is None]
        self._dropped = Spans.of(whole, "frames")
        placed = [r for r in redactions if "frames" in r.streams and r.place is not None]
        self._waiting = sorted(placed, key=lambda r: r.began, reverse=True)
        self._placed: list[Redaction] = []  # those that may still meet a picture
        self._made: dict[tuple[str, tuple[Box, ...]], str] = {}

    def take(self, event: rec.FrameTaken) -> rec.FrameTaken | None:
        """Return the event with the picture that may be seen; None where none may."""
        if self._dropped.hit(event.began, event.t):
            return None
        while self._waiting and self._waiting[-1].began <= event.t:
            self._placed.append(self._waiting.pop())
        self._placed = [r for r in self._placed if r.ended >= event.began - _OVERLAP_S]
        places = tuple(sorted({
            r.place for r in self._placed
            if r.place is not None and r.began <= event.t and r.ended >= event.began
        }))  # fmt: skip
        key = (event.sha256, places)
        if len(self._made) > _REMEMBERED:
            self._made.clear()
        if key not in self._made:
            self._made[key] = self._make(event, places)
        made = self._made[key]
        return replace(event, sha256=made) if made else None

    def _make(self, event: rec.FrameTaken, places: tuple[Box, ...]) -> str:
        """Write the picture and return its sha256; "" where the file is none."""
        old = self._source.path / "frames" / f"{Path(event.sha256).name}.png"
        try:
            if not places:
                target = self._target / "frames" / old.name
                if not target.exists():
                    shutil.copyfile(old, target)
                return event.sha256
            screen = self._source.screen or (event.width, event.height)
            sha256, data = painted(old, places, screen)
        except (OSError, ValueError, SyntaxError):
            return ""
        (self._target / "frames" / f"{sha256}.png").write_bytes(data)
        return sha256
