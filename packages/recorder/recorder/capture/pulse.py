"""The microphone through PulseAudio, or PipeWire, which speaks the same: libpulse-simple.

https://freedesktop.org/software/pulseaudio/doxygen/simple_8h.html
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)

from recorder.capture.errors import CaptureError

RATE = 16_000
_RECORD, _S16LE = 2, 3
_DEFAULT = 0xFFFFFFFF


class _Spec(Structure):
    _fields_ = [("format", c_int), ("rate", c_uint32), ("channels", c_uint8)]


class _Buffer(Structure):
    _fields_ = [
        (name, c_uint32) for name in ("maxlength", "tlength", "prebuf", "minreq", "fragsize")
    ]


class Microphone:
    """An open source of sound, 16 kHz mono; for one thread. Raises CaptureError."""

    def __init__(self, block: int, source: str | None) -> None:
        """`block` is how many samples are read at once; `source` is PulseAudio's name, None its default."""
        try:
            self._pulse = ctypes.CDLL("libpulse-simple.so.0")
        except OSError as error:
            raise CaptureError(f"{error}: apt-get install libpulse0") from None
        self._block = block
        _declare(self._pulse)
        code = c_int()
        self._stream = self._pulse.pa_simple_new(
            None, b"Tandem recorder", _RECORD, source.encode() if source else None, b"thoughts",
            byref(_Spec(_S16LE, RATE, 1)), None,
            byref(_Buffer(_DEFAULT, _DEFAULT, _DEFAULT, _DEFAULT, block * 2)), byref(code),
        )  # fmt: skip
        if not self._stream:
            raise CaptureError(f"no microphone: {self._why(code)}; `--no-sound` records without")
        self._data = ctypes.create_string_buffer(block * 2)

    def read(self) -> bytes:
        """Return the next block, 16-bit little-endian; waits for it. Raises CaptureError."""
        code = c_int()
        if self._pulse.pa_simple_read(self._stream, self._data, self._block * 2, byref(code)) < 0:
            raise CaptureError(f"the microphone was lost: {self._why(code)}")
        return self._data.raw

    def latency(self) -> float:
        """Return how long ago the sample after the block read last was heard, in seconds."""
        return min(float(self._pulse.pa_simple_get_latency(self._stream, None)) / 1e6, 2.0)

    def close(self) -> None:
        self._pulse.pa_simple_free(self._stream)

    def _why(self, code: c_int) -> str:
        return str(self._pulse.pa_strerror(code).decode())


def _declare(pulse: ctypes.CDLL) -> None:
    pulse.pa_simple_new.restype = c_void_p
    pulse.pa_simple_new.argtypes = [
        c_char_p, c_char_p, c_int, c_char_p, c_char_p, POINTER(_Spec), c_void_p, POINTER(_Buffer),
        POINTER(c_int),
    ]  # fmt: skip
    pulse.pa_simple_read.argtypes = [c_void_p, c_void_p, c_size_t, POINTER(c_int)]
    pulse.pa_simple_get_latency.restype = c_uint64
    pulse.pa_simple_get_latency.argtypes = [c_void_p, POINTER(c_int)]
    pulse.pa_simple_free.restype, pulse.pa_simple_free.argtypes = None, [c_void_p]
    pulse.pa_strerror.restype, pulse.pa_strerror.argtypes = c_char_p, [c_int]
