"""Forced alignment of text that is already known: it says when each word was heard, never which.

This is no recognition: for tests, and for a machine without a model where somebody has written down
what was said. By pocketsphinx, English only; one sound is at most LONGEST_S.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.speech.protocol import SpeechMisconfigured, SpeechRefused, Word
from agent.speech.sound import RATE, Piece, pieces

LONGEST_S = 300.0
FRAME_S = 0.01
BEAMS = (1e-48, 1e-64, 1e-80, 1e-100, 1e-120)  # a search that lost its way is made wider


@dataclass(frozen=True, slots=True)
class KnownText:
    """Finds the words of `texts`/NAME.txt in the sound NAME.flac."""

    texts: Path
    name: str = "known text, pocketsphinx"

    def transcribe(self, sound: Path) -> list[Word]:
        """Return the words of the text with their times; raises SpeechRefused."""
        written = self.texts / f"{sound.stem}.txt"
        try:
            text = written.read_text()
        except OSError as error:
            raise SpeechRefused(f"{written} can't be read: {error.strerror}") from error
        return aligned(sound, text)


def aligned(sound: Path, text: str) -> list[Word]:
    """Return the words of `text` at the times at which `sound` says them.

    Raises SpeechRefused where a word is not in the dictionary or the sound says something else.
    """
    spoken = re.findall(r"[a-z']+", text.lower())
    piece = next(pieces(sound, piece_s=LONGEST_S), None)
    if piece is None or not spoken:
        return []
    for beam in BEAMS:
        if found := _found(piece, spoken, beam):
            return found
    raise SpeechRefused(f"{sound.name} does not say that: not all of its words were found")


def _found(piece: Piece, spoken: list[str], beam: float) -> list[Word]:
    """Return the words at their times, or none where the search lost its way."""
    decoder = _decoder(beam)
    for word in spoken:
        if decoder.lookup_word(word) is None:
            raise SpeechRefused(f"pocketsphinx does not know the word {word!r}")
    decoder.set_align_text(" ".join(spoken))
    try:
        decoder.start_utt()
        decoder.process_raw(piece.pcm, full_utt=True)
        decoder.end_utt()
        segments = list(decoder.seg() or ())
    except RuntimeError:
        return []
    found = [
        Word(
            re.sub(r"\(\d+\)$", "", segment.word),
            segment.start_frame * FRAME_S,
            min(piece.seconds, (segment.end_frame + 1) * FRAME_S),
            1.0,
        )
        for segment in segments
        if not segment.word.startswith(("<", "["))
    ]
    return found if [word.text for word in found] == spoken else []


def _decoder(beam: float) -> Any:
    try:
        import pocketsphinx
    except ImportError as error:
        raise SpeechMisconfigured(
            "pocketsphinx is not installed: pip install pocketsphinx"
        ) from error
    # A made voice has moments of perfect silence, of which there is no logarithm: hence the dither.
    return pocketsphinx.Decoder(
        samprate=RATE,
        loglevel="FATAL",
        lm=None,
        dither=True,
        beam=beam,
        pbeam=beam,
        wbeam=beam**0.75,
    )
