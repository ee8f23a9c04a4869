"""Pictures with places painted over, under the sha256 of what they then are."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

from PIL import Image, ImageDraw

from recorder.redact.redactions import Box

MARGIN_PX = 4
GREY = (128, 128, 128)


def painted(path: Path, places: Iterable[Box], screen: tuple[int, int]) -> tuple[str, bytes]:
    """Return (sha256, PNG) of the picture at `path` with every one of `places` painted over.

    Places are pixels of a screen of (width, height), which the picture may show at another size.
    Nothing of what was there is left: it is one colour, not a blur. Raises OSError or ValueError
    where the file is no picture.
    """
    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    wide, high = picture.width / max(1, screen[0]), picture.height / max(1, screen[1])
    draw = ImageDraw.Draw(picture)
    for left, top, width, height in places:
        draw.rectangle(
            (
                int(left * wide) - MARGIN_PX,
                int(top * high) - MARGIN_PX,
                int((left + width) * wide) + MARGIN_PX,
                int((top + height) * high) + MARGIN_PX,
            ),
            fill=GREY,
        )
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=6)
    data = out.getvalue()
    return hashlib.sha256(data).hexdigest(), data
