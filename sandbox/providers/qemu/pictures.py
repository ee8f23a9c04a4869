"""What a machine shows, taken from the emulated screen: the guest need not draw or encode anything."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from pathlib import Path

from PIL import Image

from sandbox.provider import DesktopLost
from sandbox.providers.qemu.qmp import Monitor

_MAX_BYTES = 64 << 20


class Screen:
    """The screen of one machine by QMP `screendump`; safe to use from several threads."""

    def __init__(self, run: Path, *, started_at: float) -> None:
        self._monitor = run / "screen.sock"
        self._file = run / "screen.ppm"
        self._connected: Monitor | None = None
        self._lock = threading.Lock()
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
            if self._connected is not None:
                self._connected.close()
            self._connected = None
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _dump(self) -> bytes:
        if self._connected is None:
            self._connected = Monitor(self._monitor, timeout_s=10.0)
        try:
            self._connected.run("screendump", filename=str(self._file))
            with self._file.open("rb") as file:
                if os.fstat(file.fileno()).st_size > _MAX_BYTES:
                    raise DesktopLost("the emulated screen is larger than any that was asked for")
                return file.read()
        except (DesktopLost, OSError) as error:
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
