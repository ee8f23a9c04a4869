"""What a machine shows, taken from the emulated screen: the guest need not draw or encode anything."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

from PIL import Image

from sandbox.provider import DesktopLost, SandboxError
from sandbox.providers.qemu.qmp import Monitor

_MAX_BYTES = 64 << 20
_FDSET = 1


class Screen:
    """The screen of one machine by QMP `screendump`; safe to use from several threads."""

    def __init__(self, run: Path, *, started_at: float) -> None:
        self._monitor = run / "screen.sock"
        self._connected: Monitor | None = None
        # QEMU writes into our memory: it may open no file of its own any more.
        self._picture = os.memfd_create("screen", os.MFD_CLOEXEC)
        self._written = os.open(f"/proc/self/fd/{self._picture}", os.O_WRONLY | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._closed = False
        self._last: tuple[bytes, bytes] = (b"", b"")
        # Still above what an earlier process counted: nobody takes a thousand pictures a second.
        self._seq = int(1000 * (time.time() - started_at))

    def take(self) -> tuple[dict[str, object], bytes]:
        """Return the header of an observation and its PNG; raises DesktopLost."""
        with self._lock:
            captured_at = time.time()
            raw = self._dump()
            if raw != self._last[0]:
                self._last = raw, _png(raw)
            width, height = _size(raw)
            header: dict[str, object] = {
                "width": width,
                "height": height,
                "elements": None,
                "url": "",
                "captured_at": captured_at,
                "seq": self._next(),
            }
            return header, self._last[1]

    def next_seq(self) -> int:
        """Return the number of an observation that the guest made itself."""
        with self._lock:
            return self._next()

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._connected is not None:
                self._connected.close()
            self._connected = None
            for fd in (self._picture, self._written):
                os.close(fd)

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _dump(self) -> bytes:
        if self._closed:  # the numbers of its descriptors may be another machine's by now
            raise DesktopLost("the machine has been let go of")
        if self._connected is None:
            self._connected = Monitor(self._monitor, timeout_s=10.0)
            self._connected.give_set(_FDSET, self._written)
        try:
            # QEMU's copy of the descriptor has our place in the file: each picture starts at 0.
            os.lseek(self._written, 0, os.SEEK_SET)
            self._connected.run("screendump", filename=f"/dev/fdset/{_FDSET}")
            size = os.lseek(self._written, 0, os.SEEK_CUR)
            if size > _MAX_BYTES:
                raise DesktopLost("the emulated screen is larger than any that was asked for")
            return os.pread(self._picture, size, 0)
        except (SandboxError, OSError) as error:
            self._connected.close()
            self._connected = None
            raise DesktopLost(f"no picture of the screen: {error}") from error


def _size(ppm: bytes) -> tuple[int, int]:
    """Return width and height of a binary PPM (P6) as QEMU writes it."""
    fields = ppm[:64].split(None, 4)
    if len(fields) < 4 or fields[0] != b"P6":
        raise DesktopLost("QEMU's picture is no PPM")
    return int(fields[1]), int(fields[2])


def _png(ppm: bytes) -> bytes:
    width, height = _size(ppm)
    out = io.BytesIO()
    pixels = ppm[len(ppm) - 3 * width * height :]
    Image.frombytes("RGB", (width, height), pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()
