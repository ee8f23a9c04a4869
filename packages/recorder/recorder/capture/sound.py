"""Spoken thoughts: pieces of some seconds, FLAC, each with the time of its first sample."""

from __future__ import annotations

import array
import io
import threading
from collections.abc import Callable
from typing import NamedTuple

import soundfile

from recorder.capture.errors import CaptureError
from recorder.capture.pulse import RATE, Microphone
from recorder.capture.sink import Sink
from trajectory.recording import AudioWritten, Missed

_BLOCK = RATE // 5
_PIECE_S = 10.0
# A peak below this, of 32767, is the noise of a room, not a voice near the microphone.
_SILENCE = 330
_AGAIN_S = 5.0


class Level(NamedTuple):
    """A fifth of a second: its peak, 0..1, and for how long there has been silence, in seconds."""

    peak: float
    silent_s: float


class Sound:
    """Records the microphone; closed while paused, so that the system shows that nobody listens.

    `on_level` is called for each block from the sound's thread.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        source: str | None,
        on_level: Callable[[Level], None],
        on_loss: Callable[[str], None],
    ) -> None:
        self._sink, self._source = sink, source
        self._on_level, self._on_loss = on_level, on_loss
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # held while a block is taken in
        self._blocks: list[bytes] = []
        self._began = 0.0
        self._number = 0
        self._silent_s = 0.0

    def start(self) -> None:
        self._microphone: Microphone | None = Microphone(_BLOCK, self._source)
        self._wanted.set()
        self._thread = threading.Thread(target=self._run, name="sound", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Write what was heard until now and let go of the microphone."""
        self._wanted.clear()
        with self._lock:
            self._write()

    def resume(self) -> None:
        self._wanted.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()
        self._thread.join(2)
        with self._lock:
            self._write()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait()
            lost = self._sink.clock.now()
            try:
                microphone = self._microphone or Microphone(_BLOCK, self._source)
                self._microphone = None
                self._listen(microphone)
            except CaptureError as error:
                self._on_loss(str(error))
                self._stopping.wait(_AGAIN_S)
                now = self._sink.clock.now()
                if self._wanted.is_set():
                    self._sink.put(Missed(now, lost, "audio", str(error)))

    def _listen(self, microphone: Microphone) -> None:
        try:
            while self._wanted.is_set() and not self._stopping.is_set():
                block = microphone.read()
                ended = self._sink.clock.now() - microphone.latency()
                with self._lock:
                    if self._wanted.is_set():
                        self._take(block, ended - _BLOCK / RATE)
        finally:
            microphone.close()
            with self._lock:
                self._write()

    def _take(self, block: bytes, began: float) -> None:
        if not self._blocks:
            if began < self._sink.since:
                return
            self._began = began
        self._blocks.append(block)
        samples = array.array("h", block)
        peak = max(max(samples), -min(samples))
        self._silent_s = self._silent_s + _BLOCK / RATE if peak < _SILENCE else 0.0
        self._on_level(Level(min(1.0, peak / 32767), self._silent_s))
        if len(self._blocks) * _BLOCK >= _PIECE_S * RATE:
            self._write()

    def _write(self) -> None:
        """Hand over the piece that has been gathered."""
        if not self._blocks:
            return
        data, self._blocks = b"".join(self._blocks), []
        if (left := self._sink.until - self._began) < len(data) / (2 * RATE):
            data = data[: max(0, int(left * RATE)) * 2]  # a pause began within it
        if not data:
            return
        samples = array.array("h", data)
        silent = max(max(samples), -min(samples)) < _SILENCE
        name = f"{self._number:05d}.flac"
        self._number += 1
        event = AudioWritten(self._began, name, len(samples), RATE, silent)
        self._sink.put(event, self._sink.folder.audio / name, flac(data))


def flac(data: bytes) -> bytes:
    """Return 16-bit mono samples as FLAC."""
    out = io.BytesIO()
    with soundfile.SoundFile(out, "w", RATE, 1, "PCM_16", format="FLAC") as file:
        file.buffer_write(data, "int16")
    return out.getvalue()
