"""What is removed: an interval of time, from which streams, and where on the pictures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Box: TypeAlias = tuple[int, int, int, int]  # left, top, width, height on the virtual screen
Stream: TypeAlias = Literal["input", "windows", "elements", "frames", "audio", "words"]
EVERYTHING: tuple[Stream, ...] = ("input", "windows", "elements", "frames", "audio", "words")


class RedactionError(Exception):
    """The recording is held back whole; the message says what is missing and what to do."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """From `began` to `ended` (recorder seconds, both included) `streams` are removed.

    With a `place`, pictures are painted over there and kept; without one they are dropped.
    `cause` never says what was removed.
    """

    began: float
    ended: float
    cause: str
    streams: tuple[Stream, ...] = EVERYTHING
    place: Box | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "began": round(max(0.0, self.began), 3),
            "ended": round(min(self.ended, 1e9), 3),
            "cause": self.cause,
            "streams": list(self.streams),
        }


class Spans:
    """Intervals, joined where they touch."""

    def __init__(self, spans: Iterable[tuple[float, float]]) -> None:
        self.spans: list[tuple[float, float]] = []
        for began, ended in sorted(spans):
            if self.spans and began <= self.spans[-1][1]:
                self.spans[-1] = (self.spans[-1][0], max(ended, self.spans[-1][1]))
            else:
                self.spans.append((began, ended))
        self._starts = [began for began, _ in self.spans]

    @staticmethod
    def of(redactions: Iterable[Redaction], stream: Stream) -> Spans:
        return Spans((r.began, r.ended) for r in redactions if stream in r.streams)

    def hit(self, began: float, ended: float) -> tuple[float, float] | None:
        """Return an interval that has a moment in common with [began, ended], or None."""
        at = bisect_right(self._starts, ended) - 1
        if at >= 0 and self.spans[at][1] >= began:
            return self.spans[at]
        return None


def holds(outer: Box, inner: Box) -> bool:
    """Whether `inner` lies within `outer`; nothing lies within a box without an area."""
    left, top, width, height = outer
    return (
        width > 0 and height > 0
        and left <= inner[0] and top <= inner[1]
        and inner[0] + inner[2] <= left + width
        and inner[1] + inner[3] <= top + height
    )  # fmt: skip


def known(box: Box) -> Box | None:
    """Return the box, or None for one without an area: nobody knows where that is."""
    return box if box[2] > 0 and box[3] > 0 else None


FOREVER = math.inf
