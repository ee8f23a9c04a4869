"""Which rows make up which step: a function of the seed and the step alone, so that a run resumes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence

from training.trainers.rows import Row

WINDOW = 8  # batches among which rows are sorted by length


def epoch_order(rows: Sequence[Row], mix: Mapping[str, float], seed: int, epoch: int) -> list[int]:
    """Return the row numbers of one epoch, shuffled.

    A source with weight w gives w times its rows: whole copies, and of the rest a fresh sample. A
    source that `mix` does not name has weight 1.
    """
    rng = random.Random(f"{seed}/{epoch}")
    by_source: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        by_source.setdefault(row.source, []).append(number)
    order: list[int] = []
    for source in sorted(by_source):
        numbers, weight = by_source[source], mix.get(source, 1.0)
        copies, rest = divmod(round(weight * len(numbers)), len(numbers))
        order += numbers * copies + rng.sample(numbers, rest)
    rng.shuffle(order)
    return order


def epoch_batches(
    rows: Sequence[Row], size: int, *, mix: Mapping[str, float], seed: int, epoch: int
) -> list[list[int]]:
    """Return the batches of one epoch as row numbers; the last one may be short.

    Rows are shuffled, then sorted by length within windows of batches, so that a batch holds rows of
    like length; then the batches are shuffled.
    """
    order = epoch_order(rows, mix, seed, epoch)
    result = []
    for start in range(0, len(order), size * WINDOW):
        part = sorted(
            order[start : start + size * WINDOW], key=lambda number: (rows[number].length, number)
        )
        result += [part[at : at + size] for at in range(0, len(part), size)]
    random.Random(f"{seed}/{epoch}/batches").shuffle(result)
    return result


def steps_per_epoch(rows: Sequence[Row], size: int, *, mix: Mapping[str, float]) -> int:
    return math.ceil(len(epoch_order(rows, mix, 0, 0)) / size)


def plan(
    rows: Sequence[Row], size: int, *, mix: Mapping[str, float], seed: int, first: int
) -> Iterator[list[int]]:
    """Yield the batch of every step from `first` (0-based) on, epoch after epoch."""
    epoch, skip = divmod(first, steps_per_epoch(rows, size, mix=mix))
    while True:
        yield from epoch_batches(rows, size, mix=mix, seed=seed, epoch=epoch)[skip:]
        epoch, skip = epoch + 1, 0


def micro_batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Split a step into parts of at most `most` padded tokens each (0: one part); places in `lengths`.

    A row that is longer by itself is a part of its own.
    """
    if not most:
        return [list(range(len(lengths)))]
    parts: list[list[int]] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda p: (-lengths[p], p)):
        if parts and longest * (len(parts[-1]) + 1) <= most:
            parts[-1].append(place)
        else:
            parts.append([place])
            longest = lengths[place]
    return parts
