"""Pictures of the screen: what is decoded is what was encoded, however little of it had changed."""

from __future__ import annotations

import random
from io import BytesIO

import pytest
from PIL import Image

from guest.png import Encoder


def decoded(png: bytes) -> Image.Image:
    with Image.open(BytesIO(png)) as picture:
        picture.load()  # with its checksums
        return picture.convert("RGB")


@pytest.mark.parametrize("size", [(1, 1), (7, 48), (13, 49), (64, 200)])
def test_every_picture_comes_back_as_it_was(size: tuple[int, int]) -> None:
    width, height = size
    stride = 4 * width + 8  # rows may be longer than what is shown of them
    encoder = Encoder(width, height, stride)
    pick = random.Random(width)
    raw = bytearray(pick.randbytes(stride * height))
    for _ in range(6):
        expected = Image.frombytes("RGB", size, bytes(raw), "raw", "BGRX", stride, 1)
        png = encoder.encode(bytes(raw))
        assert decoded(png).tobytes() == expected.tobytes()
        assert png == encoder.encode(bytes(raw)) == Encoder(*size, stride).encode(bytes(raw))
        for _ in range(3):
            raw[pick.randrange(len(raw))] ^= 0xFF
