"""How well what was said fits what was done. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from annotation.recordings import lexicon
from annotation.recordings.acts import Act

NAMED, VERB = 3.2, 1.1  # what a name or a verb of the action is worth
CONTRARY = 1.2  # a verb of another kind of action
TENSE = 0.8  # a tense that does not fit the side on which the utterance lies


class Content:
    """The words of every action of a recording, read once."""

    def __init__(self, acts: Sequence[Act]) -> None:
        self.kinds = [lexicon.kind_of(act) for act in acts]
        self.names = [lexicon.names_of(act) - lexicon.EMPTY for act in acts]
        self.telling = shares(self.names)
        self._heard: dict[str, tuple[set[str], set[str]]] = {}

    def worth(self, text: str, at: int, side: int) -> float:
        """Return what the utterance gains by meaning action `at`.

        `side` is where it lies: -1 before the action, 0 during it, 1 after it.
        """
        heard, plain = self._read(text)
        named = sorted(
            (self._match(word, heard) * self.telling[word] for word in self.names[at]), reverse=True
        )
        # A second and third word of the name say less than the first.
        gain = NAMED * sum(
            part * share for part, share in zip(named[:3], (1.0, 0.35, 0.2), strict=False)
        )
        kind = self.kinds[at]
        mine = lexicon.VERBS.get(kind, frozenset())
        if heard & mine:
            gain += VERB
        elif any(heard & verbs for other, verbs in lexicon.VERBS.items() if other != kind):
            gain -= CONTRARY
        if side == 1 and plain & lexicon.AHEAD and not plain & lexicon.PAST:
            gain -= TENSE
        if side == 1 and plain & lexicon.PAST:
            gain += TENSE
        if side == -1 and plain & lexicon.PAST:
            gain -= TENSE
        return gain

    def _read(self, text: str) -> tuple[set[str], set[str]]:
        if text not in self._heard:
            heard = set(lexicon.words(text)) - lexicon.EMPTY
            self._heard[text] = heard, set(re.findall(r"[a-z]+", text.lower()))
        return self._heard[text]

    @staticmethod
    def _match(word: str, heard: set[str]) -> float:
        """Return 1 for a word that was heard, less for one that was nearly heard, as engines do."""
        if word in heard:
            return 1.0
        if len(word) >= 4 and any(_near(word, other) for other in heard if len(other) >= 4):
            return 0.6
        return 0.0


def _near(one: str, other: str) -> bool:
    """Whether two words differ by one letter put in, left out or changed."""
    if abs(len(one) - len(other)) > 1:
        return False
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    rest, others = one[at:], other[at:]
    return rest[1:] == others[1:] or rest == others[1:] or rest[1:] == others


def shares(names: Sequence[set[str]]) -> dict[str, float]:
    """Return how telling each word is: 1 for one that a single action has, less for common ones."""
    counts = Counter(word for one in names for word in one)
    return {word: 1.0 / (1.0 + 0.6 * math.log(count)) for word, count in counts.items()}
