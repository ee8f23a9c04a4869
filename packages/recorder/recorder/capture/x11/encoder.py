"""Grabs to PNG, in a thread of its own: neither the hand nor the screen waits for it."""

from __future__ import annotations

import hashlib
import io
import queue
import threading
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
            if t is None:
                png = to_png(grab, self._sink.own.during(grab.began, grab.t))
                grab.sha256, grab.raw = hashlib.sha256(png).hexdigest(), b""
                event = FrameTaken(grab.t, grab.began, grab.sha256, grab.width, grab.height)
                self._sink.put(event, self._sink.folder.frames / f"{grab.sha256}.png", png)
            elif grab.sha256:
                self._sink.put(FrameTaken(t, t, grab.sha256, grab.width, grab.height))


def to_png(grab: Grab, own: Iterable[Box]) -> bytes:
    """Return a grab as PNG, lightly compressed, without the signs that a recording is made.

    The strip covers the uppermost rows; they are drawn like the row below them. `own` is where the
    small window was: grey, as redaction paints.
    """
    row = grab.raw[STRIP * grab.stride : (STRIP + 1) * grab.stride]
    raw = row * STRIP + grab.raw[STRIP * grab.stride :]
    size = (grab.width, grab.height)
    picture = Image.frombuffer("RGB", size, raw, "raw", "BGRX", grab.stride, 1)
    for left, top, width, height in own:
        picture.paste(_GREY, (left, top, left + width, top + height))
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()
