"""RapidOCR: one model finds lines, another reads them; only where a picture changed.

The models lie in the package and run on this computer, nothing is fetched.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recorder.redact.redactions import Box
from recorder.redact.screen.changed import changed, meets
from recorder.redact.screen.reader import Line, Read

Pixels = NDArray[np.uint8]  # (height, width, 3), red, green, blue
_UNSURE = 0.3  # what is surer than this is text; a token is read with less ease than a word
_LINES = 4000  # remembered by how they look: one that moves is not read again
_PAD = 12  # pixels around what changed that a line needs to be seen as one


def rapid_reader() -> RapidReader:
    """Load the models; raises ImportError or OSError where they are not installed."""
    # ONNX Runtime's packages send events to their maker unless told not to before they are loaded:
    # https://github.com/microsoft/onnxruntime/blob/main/docs/Privacy.md
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    from rapidocr_onnxruntime import RapidOCR

    threads = max(1, (os.cpu_count() or 2) // 2)
    # One line at a time: in a batch every line is as long as the longest, in time and in memory.
    engine = RapidOCR(
        intra_op_num_threads=threads, inter_op_num_threads=1, det_limit_type="max", rec_batch_num=1
    )
    # The number at the end is that of what is done here.
    return RapidReader(engine, f"rapidocr {importlib.metadata.version('rapidocr-onnxruntime')} 1")


@dataclass
class RapidReader:
    """Finds lines by one model and reads them by another."""

    engine: Any
    name: str
    _texts: OrderedDict[bytes, str] = field(default_factory=OrderedDict)

    def read(self, pixels: Pixels, before: Read | None) -> tuple[Line, ...]:
        """Return the lines of a picture; those of `before` that lie where nothing changed are kept."""
        height, width = pixels.shape[:2]
        if before is None or before.pixels.shape != pixels.shape:
            places, kept = [(0, 0, width, height)], []
        else:
            places = changed(before.pixels, pixels, [line.box for line in before.lines])
            kept = [li for li in before.lines if not any(meets(li.box, p) for p in places)]
        boxes = [box for place in places for box in self._find(pixels, place)]
        texts = self._read(pixels, boxes)
        lines = [Line(text, box) for box, text in zip(boxes, texts, strict=True) if text.strip()]
        return tuple(sorted(kept + lines, key=lambda line: (line.box[1], line.box[0])))

    def _find(self, pixels: Pixels, place: Box) -> list[Box]:
        left, top, width, height = place
        x0, y0 = max(0, left - _PAD), max(0, top - _PAD)
        part = pixels[y0 : top + height + _PAD, x0 : left + width + _PAD, ::-1]
        found, _ = self.engine(
            np.ascontiguousarray(part), use_det=True, use_cls=False, use_rec=False
        )
        boxes = []
        for corners in found or []:
            xs, ys = [int(x) for x, _ in corners], [int(y) for _, y in corners]
            box = (x0 + min(xs), y0 + min(ys), max(xs) - min(xs) + 1, max(ys) - min(ys) + 1)
            if meets(box, place):
                boxes.append(box)
        return boxes

    def _read(self, pixels: Pixels, boxes: list[Box]) -> list[str]:
        parts = [_ink(pixels[t : t + h, x : x + w]) for x, t, w, h in boxes]
        keys = [hashlib.sha256(repr(p.shape).encode() + p.tobytes()).digest() for p in parts]
        new = {key: part for key, part in zip(keys, parts, strict=True) if key not in self._texts}
        if new:
            read, _ = self.engine.text_rec([part[:, :, ::-1] for part in new.values()])
            for key, (text, score) in zip(new, read, strict=True):
                self._texts[key] = text if score >= _UNSURE else ""
        texts = [self._texts[key] for key in keys]
        for key in keys:
            self._texts.move_to_end(key)
        while len(self._texts) > _LINES:
            self._texts.popitem(last=False)
        return texts


def _ink(part: Pixels) -> Pixels:
    """Return a line without the empty space around it, so that it looks the same where it moves to."""
    drawn = (part != part[0, 0]).any(axis=2)
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    if not len(rows):
        return np.ascontiguousarray(part)
    top, bottom = max(0, rows[0] - 3), rows[-1] + 4
    left, right = max(0, columns[0] - 3), columns[-1] + 4
    return np.ascontiguousarray(part[top:bottom, left:right])
