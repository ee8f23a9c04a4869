"""What turns sound into words: the protocol, a word, and what can go wrong. No Django here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SpeechError(Exception):
    """No words came of a sound; subclasses name the boundary that broke."""


class SpeechMisconfigured(SpeechError):
    """There is no such engine here; the message says what to install or set."""


class SpeechUnreachable(SpeechError):
    """The endpoint does not answer, or not now: asking again later may help."""


class SpeechRefused(SpeechError):
    """The engine does not take this sound; asking again would not help."""


@dataclass(frozen=True, slots=True)
class Word:
    """One heard word. `began` and `ended` are seconds from the start of the sound.

    `confidence` is the engine's own, 0 to 1; 1.0 where it gives none.
    """

    text: str
    began: float
    ended: float
    confidence: float


class Transcriber(Protocol):
    """Hears words in a file of sound."""

    @property
    def name(self) -> str:
        """Which engine and model: kept beside every word that it heard."""
        ...

    def transcribe(self, sound: Path) -> list[Word]:
        """Return the words of a sound file, in order, none reaching beyond its end.

        Silence gives none. Raises SpeechError.
        """
        ...
