"""How well what was said fits what was done. Pure."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from annotation.recordings import lexicon
from annotation.recordings.acts import Act

NAMED, VERB = 3.2, 1.1  # what a name or a verb of the action is worth
CONTRARY = 1.2  # a verb of another kind of action
NEARBY = 25  # actions before and after that share a word: what was done an hour ago confuses nobody
TENSE = 0.8  # a tense that does not fit the side on which the utterance lies


class Content:
    """The words of every action of a recording, read once."""

    def __init__(self, acts: Sequence[Act]) -> None:
        self.kinds = [lexicon.kind_of(act) for act in acts]
        self.names = [lexicon.names_of(act) - lexicon.EMPTY for act in acts]
        self._places: dict[str, list[int]] = defaultdict(list)  # the actions that have a word
        for at, words in enumerate(self.names):
            for word in words:
                self._places[word].append(at)
        self._heard = _Heard("")

    def worth(self, text: str, at: int, side: int) -> float:
        """Return what the utterance gains by meaning action `at`.

        `side` is where it lies: -1 before the action, 0 during it, 1 after it. Asked fastest for one
        text after the other.
        """
        if text != self._heard.text:
            self._heard = _Heard(text)
        heard = self._heard
        named = sorted(
            (heard.match(word) * self.telling(word, at) for word in self.names[at]), reverse=True
        )
        # A second and third word of the name say less than the first.
        gain = NAMED * sum(
            part * share for part, share in zip(named[:3], (1.0, 0.35, 0.2), strict=False)
        )
        gain += heard.verbs(self.kinds[at])
        if side == 1 and heard.ahead:
            gain -= TENSE
        if side == 1 and heard.past:
            gain += TENSE
        if side == -1 and heard.past:
            gain -= TENSE
        return gain

    def telling(self, word: str, at: int) -> float:
        """Return 1 for a word of one action alone, less for one that others nearby have too."""
        places = self._places[word]
        count = bisect_right(places, at + NEARBY) - bisect_left(places, at - NEARBY)
        return 1.0 / (1.0 + 0.6 * math.log(max(1, count)))


class _Heard:
    """One text's words, and what was asked about them already."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = set(lexicon.words(text)) - lexicon.EMPTY
        plain = set(re.findall(r"[a-z]+", text.lower()))
        self.past = bool(plain & lexicon.PAST)
        self.ahead = bool(plain & lexicon.AHEAD) and not self.past
        self._matches: dict[str, float] = {}
        self._verbs: dict[str, float] = {}

    def match(self, word: str) -> float:
        """Return 1 for a word that was heard, less for one that was nearly heard, as engines do."""
        if word not in self._matches:
            close = len(word) >= 4 and any(_near(word, o) for o in self.words if len(o) >= 4)
            self._matches[word] = 1.0 if word in self.words else 0.6 if close else 0.0
        return self._matches[word]

    def verbs(self, kind: str) -> float:
        """Return what the verbs say for an action of this kind, or against it."""
        if kind not in self._verbs:
            mine = self.words & lexicon.VERBS.get(kind, frozenset())
            others = any(self.words & verbs for o, verbs in lexicon.VERBS.items() if o != kind)
            self._verbs[kind] = VERB if mine else -CONTRARY if others else 0.0
        return self._verbs[kind]


def _near(one: str, other: str) -> bool:
    """Whether two words differ by one letter put in, left out or changed."""
    if abs(len(one) - len(other)) > 1:
        return False
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    rest, others = one[at:], other[at:]
    return rest[1:] == others[1:] or rest == others[1:] or rest[1:] == others
