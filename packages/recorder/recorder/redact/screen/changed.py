"""Where one picture differs from another, in boxes that cut no line of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recorder.redact.redactions import Box

Pixels = NDArray[np.uint8]

_TILE = 16  # pixels
_WHOLE = 0.6  # of the picture: when more than this changed, it is read as a whole


def changed(before: Pixels, after: Pixels, lines: Sequence[Box]) -> list[Box]:
    """Return boxes outside of which two pictures of one size, (height, width, 3), are the same.

    No box ends within one of `lines`, those that were read on `before`, and none meets another.
    """
    height, width = after.shape[:2]
    rows, columns = -(-height // _TILE), -(-width // _TILE)
    differs = np.zeros((rows * _TILE, columns * _TILE), bool)
    differs[:height, :width] = np.not_equal(before, after).any(axis=2)
    tiles = np.asarray(differs.reshape(rows, _TILE, columns, _TILE).any(axis=(1, 3)))
    boxes = [
        (x * _TILE, y * _TILE, (until - x) * _TILE, _TILE)
        for y in range(rows) for x, until in _runs(tiles[y])
    ]  # fmt: skip
    if sum(w * h for _, _, w, h in boxes) > _WHOLE * width * height:
        return [(0, 0, width, height)]
    joined = _joined(boxes)
    while True:
        grown = _joined([_with(box, lines) for box in joined])
        if grown == joined:
            break
        joined = grown
    if sum(w * h for _, _, w, h in joined) > _WHOLE * width * height:
        return [(0, 0, width, height)]
    return [_within(box, width, height) for box in joined]


def meets(a: Box, b: Box) -> bool:
    """Whether two boxes have a pixel in common."""
    return (
        a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
    )  # fmt: skip


def around(a: Box, b: Box) -> Box:
    """Return the smallest box that holds both."""
    left, top = min(a[0], b[0]), min(a[1], b[1])
    right, bottom = max(a[0] + a[2], b[0] + b[2]), max(a[1] + a[3], b[1] + b[3])
    return (left, top, right - left, bottom - top)


def _runs(row: Any) -> list[tuple[int, int]]:
    """Return where a row of tiles has changed ones: (first, after the last), small gaps joined."""
    runs: list[tuple[int, int]] = []
    for x in np.flatnonzero(row).tolist():
        if runs and x - runs[-1][1] <= 2:
            runs[-1] = (runs[-1][0], x + 1)
        else:
            runs.append((x, x + 1))
    return runs


def _joined(boxes: Sequence[Box]) -> list[Box]:
    """Return boxes that hold all of `boxes`, those that meet or lie side by side joined."""
    joined: list[Box] = []
    for box in sorted(boxes, key=lambda b: (b[1], b[0])):
        again = True
        while again:
            near = (box[0] - 2 * _TILE, box[1] - 1, box[2] + 4 * _TILE, box[3] + 2)
            met = [other for other in joined if meets(near, other)]
            again = bool(met)
            for other in met:
                joined.remove(other)
                box = around(box, other)
        joined.append(box)
    return sorted(joined)


def _with(box: Box, lines: Sequence[Box]) -> Box:
    """Return the box with every line that it meets, or that ends just beside it."""
    near = (box[0] - _TILE, box[1] - 2, box[2] + 2 * _TILE, box[3] + 4)
    for line in lines:
        if meets(near, line):
            box = around(box, line)
    return box


def _within(box: Box, width: int, height: int) -> Box:
    left, top = max(0, box[0]), max(0, box[1])
    return (left, top, min(width, box[0] + box[2]) - left, min(height, box[1] + box[3]) - top)
