"""Looks through the pictures of the redacted copy for what is only shown, while its person reviews.

What was read is kept in `pictures.jsonl` beside the copy, so that it goes on where it was; it never
leaves the computer, and is deleted with the recording.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from recorder.redact import Line, Read, Reader, Redaction, RedactionError, hidden, reader
from recorder.redact.redactions import Box
from recorder.review.prepare import Reviewable
from recorder.spool import SpoolError
from trajectory.recording import FrameTaken

State = Literal["reading", "read", "unread"]
_NEAR = 3  # pictures to compare with: one goes back and forth between windows
_LINE = 1 << 22


class Looking:
    """Reads every picture once, in a thread of its own; `places` says what is painted over on one."""

    def __init__(self, ready: Reviewable, get_reader: Callable[[], Reader] = reader) -> None:
        self._ready, self._get = ready, get_reader
        self._kept = ready.folder.path / "pictures.jsonl"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pictures", daemon=True)
        self._places: dict[str, dict[Box, str]] = {}
        self.state: State = "reading"
        self.cause = ""  # why no picture is read
        self._wanted = dict.fromkeys(_shown(ready))
        self.done, self.of = 0, len(self._wanted)

    def start(self) -> None:
        self._thread.start()

    def stop(self, deadline_s: float = 30.0) -> None:
        """Stop after the picture that is being read; what was read is kept."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(deadline_s)

    def wait(self, deadline_s: float) -> None:
        """Wait until all is read, or until the deadline."""
        self._thread.join(deadline_s)

    def to_dict(self) -> dict[str, Any]:
        return {"state": self.state, "done": self.done, "of": self.of, "cause": self.cause}

    def places(self, sha256: str) -> tuple[Box, ...]:
        """Return where a picture shows what nobody may see, in pixels of the screen."""
        return tuple(self._places.get(sha256, ()))

    def redactions(self) -> list[Redaction]:
        """Return what has to be painted over, each place for as long as pictures show it."""
        made: list[Redaction] = []
        shown: dict[tuple[Box, str], tuple[float, float]] = {}
        for event in self._ready.events():
            if not isinstance(event, FrameTaken):
                continue
            now = set(self._places.get(event.sha256, {}).items())
            for key in [key for key in shown if key not in now]:
                made.append(_painted(key, shown.pop(key)))
            for key in now:
                shown[key] = (shown[key][0] if key in shown else event.began, event.t)
        made += [_painted(key, span) for key, span in shown.items()]
        return sorted(made, key=lambda r: (r.began, r.ended))

    def _run(self) -> None:
        try:
            self._look(self._get())
        except (RedactionError, SpoolError, OSError) as error:
            self.state, self.cause = "unread", str(error)
        except Exception as error:  # a model that breaks: its person is asked to look instead
            self.state, self.cause = "unread", f"pictures can't be read: {error!r}"

    def _look(self, by: Reader) -> None:
        head = self._ready.folder.head()
        screen, good = (head.screen.width, head.screen.height), 0
        for sha256, size, lines, ends in _kept(self._kept, by.name):
            self._note(sha256, lines, size, screen)
            good = ends
        near: list[Read] = []
        with self._kept.open("r+b" if good else "wb") as out:
            out.seek(good)
            out.truncate()  # a line that was cut off when the computer went down
            if not good:
                out.write(_line({"reader": by.name}))
            for sha256 in self._wanted:
                if self._stop.is_set():
                    return
                if sha256 in self._places:
                    continue
                read = _read(by, self._ready.path / "frames" / f"{sha256}.png", near)
                near = [read, *near][:_NEAR]
                size = (read.pixels.shape[1], read.pixels.shape[0])
                told = [[line.text, *line.box] for line in read.lines]
                out.write(_line({"sha256": sha256, "size": size, "lines": told}))
                out.flush()
                self._note(sha256, read.lines, size, screen)
        self.state = "read"

    def _note(
        self, sha256: str, lines: tuple[Line, ...], size: tuple[int, int], screen: tuple[int, int]
    ) -> None:
        found = hidden(lines, self._ready.detectors)
        self._places[sha256] = {_on_screen(b, size, screen): kind for b, kind in found.items()}
        self.done += sha256 in self._wanted


def _shown(ready: Reviewable) -> Iterator[str]:
    last = ""
    for event in ready.events():
        if isinstance(event, FrameTaken) and event.sha256 != last:
            last = event.sha256
            yield last


def _read(by: Reader, path: Path, near: list[Read]) -> Read:
    """Read a picture, compared with that of `near` which is most like it."""
    import numpy as np

    with Image.open(path) as opened:
        pixels = np.asarray(opened.convert("RGB"))
    alike = [before for before in near if before.pixels.shape == pixels.shape]
    before = min(alike, key=lambda b: np.count_nonzero(b.pixels != pixels), default=None)
    return Read(pixels, by.read(pixels, before))


def _painted(key: tuple[Box, str], span: tuple[float, float]) -> Redaction:
    place, kind = key
    return Redaction(span[0], span[1], f"{kind} on a picture", ("frames",), place)


def _on_screen(box: Box, size: tuple[int, int], screen: tuple[int, int]) -> Box:
    """Return a box of a picture as a wider one of the screen: a letter at an end may be left out."""
    left, top, width, height = box
    side = 2 + height // 3
    wide, high = screen[0] / size[0], screen[1] / size[1]
    return (
        int((left - side) * wide), int(top * high),
        int((width + 2 * side) * wide) + 1, int(height * high) + 1,
    )  # fmt: skip


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _kept(path: Path, name: str) -> Iterator[tuple[str, tuple[int, int], tuple[Line, ...], int]]:
    """Yield what a reader of this name has read before, each with where its line ends in the file.

    A line that can't be read ends it.
    """
    try:
        with path.open("rb") as lines:
            if json.loads(lines.readline(_LINE)) != {"reader": name}:
                return
            while line := lines.readline(_LINE):
                values = json.loads(line)
                wide, high = values["size"]
                found = tuple(
                    Line(str(text), (int(a), int(b), int(c), int(d)))
                    for text, a, b, c, d in values["lines"]
                )
                size = (max(1, int(wide)), max(1, int(high)))
                yield str(values["sha256"]), size, found, lines.tell()
    except (OSError, ValueError, KeyError, TypeError):
        return
