"""Whether a text says nearly the same as one before it."""

from __future__ import annotations

import re

ALIKE = 0.8


def shingles(text: str, size: int = 3) -> frozenset[tuple[str, ...]]:
    """Return the runs of `size` words; a shorter text is one run."""
    words = re.findall(r"\w+", text.lower())
    if len(words) <= size:
        return frozenset({tuple(words)})
    return frozenset(tuple(words[n : n + size]) for n in range(len(words) - size + 1))


def alike(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    """Return the Jaccard index of two sets of shingles, 0 to 1 (Broder, 1997)."""
    return len(a & b) / len(a | b) if a | b else 1.0


class Seen:
    """The texts so far, each with what exactly it asks for."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, frozenset[tuple[str, ...]]]] = []
        self._exact: dict[str, str] = {}

    def twin(self, text: str, exact: str) -> str:
        """Return a text that asks for the same, or in nearly the same words; "" if there is none."""
        if exact in self._exact:
            return self._exact[exact]
        mine = shingles(text)
        return next((other for other, theirs in self._texts if alike(mine, theirs) >= ALIKE), "")

    def add(self, text: str, exact: str) -> None:
        self._texts.append((text, shingles(text)))
        self._exact.setdefault(exact, text)
