"""Grabs to PNG, in a thread of its own: neither the hand nor the screen waits for it."""

from __future__ import annotations

import hashlib
import queue
import struct
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from PIL import Image

from recorder.capture.own import Box
from recorder.capture.sink import Sink
from recorder.capture.x11.panel import STRIP
from trajectory.recording import FrameTaken, Missed

_QUEUE = 8
_CLOSE_S = 20.0
_GREY = (128, 128, 128)
_LINES = 32


@dataclass(eq=False)
class Grab:
    """A picture as the X server had it, rows of `stride` bytes; nothing was drawn until `changed`."""

    raw: bytes
    began: float
    t: float
    width: int
    height: int
    stride: int
    changed: float = inf
    kept: bool = False
    sha256: str = ""


class Encoder:
    """Writes grabs into a recording; one picture is encoded once, however often it is named."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._queue: queue.Queue[tuple[Grab, float | None] | None] = queue.Queue(_QUEUE)
        self._lost: Missed | None = None
        self._thread = threading.Thread(target=self._run, name="encoder", daemon=True)
        self._thread.start()

    def encode(self, grab: Grab) -> None:
        """Have a grab written; one that finds no room is told as missed."""
        grab.kept = True
        self._put(grab, None)

    def repeat(self, grab: Grab, t: float) -> None:
        """Say that the screen still was as in `grab` at `t`."""
        self._put(grab, t)

    def close(self) -> None:
        """Write what waits."""
        self._queue.put(None)
        self._thread.join(_CLOSE_S)

    def _put(self, grab: Grab, t: float | None) -> None:
        try:
            self._queue.put_nowait((grab, t))
        except queue.Full:
            cause = "the pictures changed faster than they could be written"
            self._sink.put(Missed(grab.t, grab.began, "frames", cause))

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            grab, t = item
            try:
                if t is None:
                    self._write(grab)
                elif grab.sha256:
                    self._sink.put(FrameTaken(t, t, grab.sha256, grab.width, grab.height))
            except Exception as failure:  # the next one may be made
                cause = f"a picture could not be made ({failure!r})"
                self._sink.put(Missed(grab.t, grab.began, "frames", cause))

    def _write(self, grab: Grab) -> None:
        png = to_png(grab, self._sink.own.during(grab.began, grab.t))
        sha256, grab.raw = hashlib.sha256(png).hexdigest(), b""
        event = FrameTaken(grab.t, grab.began, sha256, grab.width, grab.height)
        self._sink.put(event, self._sink.folder.frames / f"{sha256}.png", png)
        grab.sha256 = sha256


def to_png(grab: Grab, own: Iterable[Box]) -> bytes:
    """Return a grab as PNG, lightly compressed, without the signs that a recording is made.

    The strip covers the uppermost rows; they are drawn like the row below them. `own` is where the
    small window was: grey, as redaction paints.
    """
    size = (grab.width, grab.height)
    picture = Image.frombuffer("RGB", size, grab.raw, "raw", "BGRX", grab.stride, 1)
    below = picture.crop((0, STRIP, grab.width, STRIP + 1))
    picture.paste(below.resize((grab.width, STRIP)), (0, 0))
    for left, top, width, height in own:
        picture.paste(_GREY, (left, top, left + width, top + height))
    return _png(picture)


def _png(picture: Image.Image) -> bytes:
    """Return an RGB picture as PNG, its lines unfiltered (PNG, third edition, 5 and 9).

    Pillow tries five filters for every line: for what screens show that takes more than twice the
    time, and the file is no smaller.
    """
    raw, line, packer = picture.tobytes(), picture.width * 3, zlib.compressobj(1)
    packed = []
    for part in range(0, len(raw), line * _LINES):  # what fits into a cache is packed faster
        ends = range(part, min(part + line * _LINES, len(raw)), line)
        packed.append(packer.compress(b"".join([b"\0" + raw[at : at + line] for at in ends])))
    packed.append(packer.flush())
    head = struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", b"".join(packed)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
