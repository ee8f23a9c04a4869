"""Which phases an iteration has, and which seeds it plays. Pure functions."""

from __future__ import annotations

from collections.abc import Container
from itertools import count, islice

KINDS = ("ct", "sft", "value", "ppo")
"""The kinds of run that an iteration launches."""


def due(number: int, every: int) -> bool:
    """Return whether iteration `number` (from 1) has its turn of what comes every `every`-th.

    0 is never. SFT and RL come more often than CT (UI-TARS-2, section 2.3): what comes rarely comes
    at the end of its cycle, when its data has grown.

    >>> [n for n in range(1, 9) if due(n, 4)], due(3, 0), due(3, 1)
    ([4, 8], False, True)
    """
    return every > 0 and number % every == 0


def fresh_seeds(first: int, wanted: int, taken: Container[int]) -> list[int]:
    """Return `wanted` seeds from `first` upwards that are not in `taken`.

    >>> fresh_seeds(8, 3, range(9, 20))
    [8, 20, 21]
    """
    return list(islice((seed for seed in count(first) if seed not in taken), wanted))
