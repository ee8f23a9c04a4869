"""Any endpoint with OpenAI's /v1/audio/transcriptions and its verbose_json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.speech.protocol import SpeechRefused, SpeechUnreachable, Word
from agent.speech.sound import Piece, pieces

BUSY = (408, 425, 429, 500, 502, 503, 504)
MAX_ANSWER = 4 << 20  # bytes for half a minute of speech
MAX_WORD = 200  # characters


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Asks `url` (with or without /v1) for words with their times."""

    url: str
    model: str
    token: str = ""
    language: str = ""
    timeout_s: float = 120.0

    @property
    def name(self) -> str:
        return f"endpoint:{self.model}"

    def transcribe(self, sound: Path) -> list[Word]:
        """Return the words of a sound file; raises SpeechUnreachable, SpeechRefused."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with httpx.Client(timeout=self.timeout_s, headers=headers) as client:
            return [word for piece in pieces(sound) for word in self._heard(client, piece)]

    def _heard(self, client: httpx.Client, piece: Piece) -> list[Word]:
        address = f"{self.url.rstrip('/').removesuffix('/v1')}/v1/audio/transcriptions"
        form = {
            "model": self.model,
            "response_format": "verbose_json",
            "timestamp_granularities[]": "word",
        }
        if self.language:
            form["language"] = self.language
        file = {"file": ("piece.wav", piece.wav(), "audio/wav")}
        try:
            response = client.post(address, data=form, files=file)
        except httpx.HTTPError as error:
            raise SpeechUnreachable(f"{address} does not answer: {error!r}") from error
        if response.status_code in BUSY:
            raise SpeechUnreachable(f"{address}: {response.status_code} {response.text[:200]}")
        if response.status_code != 200 or len(response.content) > MAX_ANSWER:
            raise SpeechRefused(f"{address}: {response.status_code} {response.text[:200]}")
        try:
            words = response.json()["words"]
            return [_word(record, piece) for record in words if str(record["word"]).strip()]
        except (ValueError, KeyError, TypeError) as error:
            raise SpeechRefused(
                f"{address} answered without the times of its words (verbose_json): {error!r}"
            ) from error


def _word(record: Mapping[str, Any], piece: Piece) -> Word:
    began, ended = float(record["start"]), float(record["end"])
    if not (math.isfinite(began) and math.isfinite(ended)):
        raise ValueError("a time that is no number")
    began = min(max(0.0, began), piece.seconds)
    ended = min(max(began, ended), piece.seconds)
    sure = record.get("probability", record.get("confidence"))
    confidence = float(sure) if isinstance(sure, (int, float)) and 0 <= sure <= 1 else 1.0
    text = str(record["word"]).strip()[:MAX_WORD]
    return Word(text, piece.began + began, piece.began + ended, confidence)
