"""Secrets and personal data in what was said, as far as a transcript on this computer tells."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recorder.redact.redactions import Redaction, RedactionError, Stream
from recorder.redact.screen.misread import keys
from recorder.redact.text.detectors import Detectors
from recorder.redact.text.passwords import Passwords

BEFORE_S = 0.3
PIECE, OVERLAP = 2000, 500  # characters: no detector takes an hour's speech at once
PAUSE_S = 0.8  # a secret that was announced goes on until there is a pause this long
MOST_WORDS = 12
STRETCH_S = 3.0
SPELLED = 6  # letters or digits, one after the other
_LETTER = re.compile(
    r"[A-Za-z0-9](?:[-.][A-Za-z0-9])*[-.]?|[A-Z]{1,3}\d{0,4}|\d{1,4}|(?i:zero|oh|one|two|three|four|"
    r"five|six|seven|eight|nine|double|dash|dot|underscore|capital|at)"
)
_WORDS = {"a", "i", "at", "oh", "one"}  # words of a sentence too
_SIGNS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "at": "@", "dash": "-", "hyphen": "-", "minus": "-",
    "dot": ".", "point": ".", "underscore": "_", "dollar": "$", "hash": "#", "plus": "+", "star": "*",
    "capital": "", "uppercase": "", "sign": "", "exclamation": "!", "mark": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    began: float
    ended: float
    text: str


def judge_words(words: Iterable[dict[str, Any]], detectors: Detectors) -> list[Redaction]:
    """Return what has to be removed for what was said; `words` are lines of `words.jsonl`.

    Raises RedactionError for a line that does not say what was said when.
    """
    text, said = "", list[_Word]()
    for number, word in enumerate(words, 1):
        start = len(text)
        try:
            spoken, began, ended = str(word["text"]), float(word["began"]), float(word["ended"])
        except (KeyError, TypeError, ValueError):
            spoken, began, ended = "", math.nan, math.nan
        if not began <= ended < math.inf:
            raise RedactionError(
                f"words.jsonl: word {number} needs text, began and ended, in seconds: mend it, or "
                "remove the file to listen yourself"
            )
        text += spoken
        said.append(_Word(start, len(text), began, ended, spoken))
        text += " "
    found = [
        *_by_detectors(text, said, detectors), *_spelled(said), *_in_pieces(said),
        *_passwords(said, detectors.passwords),
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def _by_detectors(text: str, said: Sequence[_Word], detectors: Detectors) -> Iterator[Redaction]:
    for at in range(0, max(1, len(text)), PIECE):
        for found in detectors.found(text[at : at + PIECE + OVERLAP]):
            start, end = at + found.start, at + found.end
            hit = [n for n, word in enumerate(said) if word.start < end and word.end > start]
            if not hit:
                continue
            first, last = hit[0], hit[-1]
            if found.what == "said to be a secret":
                last = _until_pause(said, last)
            yield _removed(said[first].began, said[last].ended, secret=found.kind == "secret")


def _until_pause(said: Sequence[_Word], at: int) -> int:
    """Return the last word of a secret that was announced: it may have many."""
    for n in range(at, min(len(said) - 1, at + MOST_WORDS)):
        if said[n + 1].began - said[n].ended > PAUSE_S:
            return n
    return min(len(said) - 1, at + MOST_WORDS)


def _spelled(said: Sequence[_Word]) -> Iterator[Redaction]:
    """Yield what was spelled: a key, a number of a telephone or of a card."""
    for stretch in _stretches(said):
        run: list[_Word] = []
        for word in [*stretch, _Word(0, 0, 0.0, 0.0, ".....")]:
            if _LETTER.fullmatch(word.text.strip(",.;:!?")):
                run.append(word)
                continue
            told = [w for w in run if w.text.lower() not in _WORDS]
            if told and sum(_letters(w.text) for w in run) >= SPELLED:
                yield _removed(run[0].began, run[-1].ended, secret=True)
            run = []


def _letters(text: str) -> int:
    """Count the letters or digits that a word stands for: "A-K" are two, "four" is one."""
    return len(re.findall(r"[A-Za-z][a-z]{2,}|[A-Za-z0-9]", text))


def _in_pieces(said: Sequence[_Word]) -> Iterator[Redaction]:
    """Yield keys that the transcript tore into several words."""
    for stretch in _stretches(said):
        compact = "".join(word.text for word in stretch)
        owners = [word for word in stretch for _ in word.text]
        for start, end in keys(compact):
            yield _removed(owners[start].began, owners[end - 1].ended, secret=True)


def _passwords(said: Sequence[_Word], passwords: Passwords) -> Iterator[Redaction]:
    """Yield what was typed into a password field: as a word, in pieces, or with its signs named."""
    for stretch in _stretches(said) if passwords else ():
        for signs in ({}, _SIGNS):
            texts = [signs.get(w.text.strip(",.;:!?").lower(), w.text) for w in stretch]
            owners = [w for w, text in zip(stretch, texts, strict=True) for _ in text]
            for start, end in passwords.near("".join(texts)):
                yield _removed(owners[start].began, owners[end - 1].ended, secret=True)


def _stretches(said: Sequence[_Word]) -> Iterator[Sequence[_Word]]:
    """Yield what was said without a long pause."""
    start = 0
    for n in range(1, len(said) + 1):
        if n == len(said) or said[n].began - said[n - 1].ended > STRETCH_S:
            yield said[start:n]
            start = n


def _removed(began: float, ended: float, *, secret: bool) -> Redaction:
    if secret:
        return Redaction(began - BEFORE_S, ended + BEFORE_S, "secret that was said")
    streams: tuple[Stream, ...] = ("audio", "words")
    return Redaction(began - BEFORE_S, ended + BEFORE_S, "personal data that was said", streams)
