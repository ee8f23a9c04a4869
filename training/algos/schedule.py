"""Learning rates over the steps of a run."""

from __future__ import annotations

import math


def cosine(step: int, total: int, *, warmup: int, height: float) -> float:
    """Return the rate of `step` (from 1): a line up to `height` over `warmup`, then half a cosine.

    It ends at a hundredth of the height instead of 0, so that the last steps still teach.
    """
    if step <= warmup:
        return height * step / max(1, warmup)
    done = (step - warmup) / max(1, total - warmup)
    return height * max(0.01, 0.5 * (1 + math.cos(math.pi * done)))
