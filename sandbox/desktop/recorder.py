"""A film of a screen, made of its pictures: WebM with VP8, encoded here and not in the computer.

The guest gives pictures, as it does for everything else; what it says is never part of a container
that others open. PyAV carries FFmpeg's libraries, so no program has to be installed.
"""

from __future__ import annotations

import io
import logging
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction

from PIL import Image

from sandbox.provider import ActionFailed, Frame, SandboxError

log = logging.getLogger(__name__)

MAX_S = 2 * 3600
MAX_BYTES = 512 * 1024 * 1024
MAX_FPS = 30
# A still screen is encoded again this often, so that a reader can jump into the film.
_STILL_S = 5.0
_MS = Fraction(1, 1000)
_REALTIME = {"deadline": "realtime", "cpu-used": "8", "crf": "24", "g": "100"}


class Recorder:
    """Films from its making until `stop`; ends by itself at MAX_S, at MAX_BYTES, or with the computer.

    A frame is as long on the film as it was on the screen: nothing is encoded while nothing changes.
    """

    def __init__(self, observe: Callable[[], Frame], width: int, height: int, *, fps: int) -> None:
        if not 0 < fps <= MAX_FPS:
            raise ActionFailed(f"a film has 1 to {MAX_FPS} frames a second")
        self._observe = observe
        self._size = (width, height)
        self._fps = fps
        self._over = threading.Event()
        self._error: Exception | None = None
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop
        self._thread = threading.Thread(target=self._film, name="film", daemon=True)
        self._thread.start()

    def stop(self) -> bytes:
        """End the film and return it; raises SandboxError if not one picture came."""
        self._over.set()
        self._thread.join()
        with self._file as file:
            file.seek(0)
            film = file.read()
        if self._error is not None:
            raise SandboxError(f"the film failed: {self._error}") from self._error
        return film

    def _film(self) -> None:
        try:
            self._encode()
        except Exception as error:  # kept for whoever stops the film
            self._error = error

    def _encode(self) -> None:
        try:
            import av  # 60 MB in memory, for those who film
        except ImportError:
            raise SandboxError("a film needs PyAV: install tandem[film]") from None
        width, height = self._size
        started = time.monotonic()
        shown, shown_at, stamp = "", -_STILL_S, -1
        with av.open(self._file, "w", format="webm") as film:
            stream = film.add_stream("libvpx", rate=self._fps, options=_REALTIME)
            stream.width, stream.height = width - width % 2, height - height % 2
            stream.pix_fmt = "yuv420p"
            stream.codec_context.time_base = _MS
            while not self._over.wait(1 / self._fps) or stamp < 0:
                now = time.monotonic() - started
                if now > MAX_S or self._file.tell() > MAX_BYTES:
                    break
                try:
                    frame = self._observe()
                except SandboxError as error:
                    if stamp < 0:
                        raise
                    log.warning("a film ends with its computer: %s", error)
                    break
                if frame.sha256 == shown and now - shown_at < _STILL_S:
                    continue
                shown, shown_at = frame.sha256, now
                picture = av.VideoFrame.from_image(_picture(frame.png, self._size))  # type: ignore[no-untyped-call]
                stamp = max(stamp + 1, round(now * 1000))
                picture.pts, picture.time_base = stamp, _MS
                film.mux(stream.encode(picture))
            film.mux(stream.encode())


def _picture(png: bytes, size: tuple[int, int]) -> Image.Image:
    """Return a guest's picture; one of another size than the screen is not unpacked at all."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as picture:
        if picture.size != size:
            raise SandboxError(f"a picture of {picture.size} from a screen of {size}")
        return picture.convert("RGB")
