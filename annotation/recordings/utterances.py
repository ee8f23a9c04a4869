"""Words into utterances: what is said in one breath, or up to the end of a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.speech import Word

PAUSE_S = 0.7
LONGEST_S = 20.0
ENDS = (".", "?", "!", "。", "？", "！")


@dataclass(frozen=True, slots=True)
class Said:
    """One utterance. Times in recorder's seconds; `confidence` is the mean of its words'."""

    began: float
    ended: float
    text: str
    words: tuple[Word, ...]

    @property
    def confidence(self) -> float:
        return sum(word.confidence for word in self.words) / max(1, len(self.words))


def utterances(words: Iterable[Word]) -> list[Said]:
    """Return the utterances of words in order of time; overlaps of two sounds are put in order."""
    found: list[Said] = []
    held: list[Word] = []
    for word in sorted(words, key=lambda one: (one.began, one.ended)):
        if held and (
            word.began - held[-1].ended > PAUSE_S
            or held[-1].text.endswith(ENDS)
            or word.ended - held[0].began > LONGEST_S
        ):
            found.append(_said(held))
            held = []
        held.append(word)
    if held:
        found.append(_said(held))
    return found


def _said(words: list[Word]) -> Said:
    ended = max(word.ended for word in words)
    return Said(words[0].began, ended, _joined([word.text for word in words]), tuple(words))


def _joined(words: list[str]) -> str:
    """Join with spaces, but not between two words of a script that has none."""
    text = ""
    for word in words:
        close = bool(text) and _han(text[-1]) and _han(word[:1])
        text += word if not text or close else f" {word}"
    return text


def _han(letter: str) -> bool:
    return "\u2e80" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uffef"
