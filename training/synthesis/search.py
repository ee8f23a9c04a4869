"""One search over a corpus: what a question would find without any browsing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

K1, B = 1.2, 0.75


class Index:
    """BM25 over documents by name (Robertson and Zaragoza, 2009, with their usual k1 and b)."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._terms = {name: Counter(_words(text)) for name, text in documents.items()}
        self._length = {name: sum(terms.values()) for name, terms in self._terms.items()}
        self._mean = sum(self._length.values()) / max(1, len(self._length))
        self._holding = Counter(word for terms in self._terms.values() for word in terms)

    def score(self, query: str, name: str) -> float:
        terms, count = self._terms[name], len(self._terms)
        norm = K1 * (1 - B + B * self._length[name] / self._mean)
        total = 0.0
        for word in set(_words(query)):
            if seen := terms[word]:
                holding = self._holding[word]
                rare = math.log(1 + (count - holding + 0.5) / (holding + 0.5))
                total += rare * seen * (K1 + 1) / (seen + norm)
        return total

    def best(self, query: str) -> str:
        """Return the name of the document that fits best; "" where none has a word of it."""
        scores = {name: self.score(query, name) for name in self._terms}
        name = max(scores, key=lambda n: scores[n], default="")
        return name if name and scores[name] > 0 else ""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
