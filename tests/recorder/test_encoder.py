"""What a grab is as PNG: the very pixels, but for the signs that a recording is made."""

from __future__ import annotations

import io
import os

from PIL import Image

from recorder.capture.x11.encoder import Grab, to_png
from recorder.capture.x11.panel import STRIP


def test_every_pixel_is_kept_but_the_strip_and_the_window() -> None:
    width, height, stride = 37, 23, 40 * 4  # as servers pad their lines
    raw = os.urandom(stride * height)
    png = to_png(Grab(raw, 0.0, 0.1, width, height, stride), [(5, 10, 8, 4)])
    with Image.open(io.BytesIO(png)) as picture:
        assert (picture.mode, picture.size) == ("RGB", (width, height))
        picture.verify()
    with Image.open(io.BytesIO(png)) as picture:
        for y in range(height):
            for x in range(width):
                at = max(y, STRIP) * stride + x * 4
                own = 5 <= x < 13 and 10 <= y < 14
                seen = (128, 128, 128) if own else tuple(raw[at : at + 3][::-1])
                assert picture.getpixel((x, y)) == seen, (x, y)
