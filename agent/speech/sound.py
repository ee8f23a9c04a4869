"""Sound files as pieces of 16 kHz mono, so that hours of speech never stand in memory at once."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.speech.protocol import SpeechMisconfigured, SpeechRefused

RATE = 16_000
PIECE_S = 30.0  # what Whisper hears at once
LOOK_BACK_S = 8.0  # a piece ends at the quietest moment of its last seconds
QUIET_S = 0.1
MAX_S = 4 * 3600.0
FORMATS = "flac,wav"  # a playlist under the name of a sound would have other files opened


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of sound: `pcm` is signed 16 bit, little endian, 16 kHz mono, from `began` s on."""

    began: float
    pcm: bytes

    @property
    def seconds(self) -> float:
        return len(self.pcm) / 2 / RATE

    def wav(self) -> bytes:
        """Return the piece as a WAV file."""
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(RATE)
            writer.writeframes(self.pcm)
        return file.getvalue()


def pieces(sound: Path, *, piece_s: float = PIECE_S) -> Iterator[Piece]:
    """Yield the sound in pieces of at most `piece_s`, cut where it is quiet.

    Raises SpeechRefused for what is no FLAC or WAV or is longer than MAX_S, and SpeechMisconfigured
    where FFmpeg's libraries are missing.
    """
    held, began, size = bytearray(), 0.0, int(piece_s * RATE) * 2
    for block in _blocks(sound):
        held += block
        while len(held) >= size:
            cut = _quietest(held[:size])
            yield Piece(began, bytes(held[:cut]))
            began += cut / 2 / RATE
            del held[:cut]
        if began > MAX_S:
            raise SpeechRefused(f"{sound.name} is longer than {MAX_S / 3600:g} hours")
    if held:
        yield Piece(began, bytes(held))


def join(sounds: Sequence[Path], target: Path) -> list[float]:
    """Write sounds one behind the other as one WAV file; return at which second each begins there.

    Raises as `pieces` does, and SpeechRefused where all are longer than MAX_S.
    """
    starts, written = [], 0
    with wave.open(str(target), "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        for sound in sounds:
            starts.append(written / 2 / RATE)
            for block in _blocks(sound):
                writer.writeframesraw(block)
                written += len(block)
                if written / 2 / RATE > MAX_S:
                    raise SpeechRefused(f"{sound.name} is longer than {MAX_S / 3600:g} hours")
    return starts


def _quietest(held: bytearray) -> int:
    """Return where to cut: the middle of the quietest QUIET_S of the last LOOK_BACK_S."""
    samples = memoryview(held).cast("h")
    step = int(QUIET_S * RATE)
    start = max(step, len(samples) - int(LOOK_BACK_S * RATE))
    best, where = float("inf"), len(samples)
    for at in range(start, len(samples) - step + 1, step):
        # Every eighth sample tells loud from quiet well enough.
        loud = sum(abs(value) for value in samples[at : at + step : 8])
        if loud <= best:
            best, where = loud, at + step // 2
    samples.release()
    return where * 2


def _blocks(sound: Path) -> Iterator[bytes]:
    try:
        import av
    except ImportError as error:
        raise SpeechMisconfigured(
            "sound is read with FFmpeg's libraries: pip install 'tandem[speech]'"
        ) from error
    try:
        with av.open(str(sound), options={"format_whitelist": FORMATS}) as container:
            if not container.streams.audio:
                raise SpeechRefused(f"{sound.name} holds no sound")
            resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
            for frame in container.decode(audio=0):
                for part in resampler.resample(frame):
                    yield bytes(part.planes[0])[: part.samples * 2]
            for part in resampler.resample(None):
                yield bytes(part.planes[0])[: part.samples * 2]
    except av.error.FFmpegError as error:
        raise SpeechRefused(f"{sound.name} can't be read as sound: {error}") from error
