"""Intervals, pass@k and paired comparisons. Pure functions, the standard library only.

Every interval is one of 95 %. What is drawn at random is drawn from a seed, so that the same episodes
always give the same numbers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

Z = 1.959963984540054
"""The 97.5 % point of the normal distribution."""

RESAMPLES = 2000


class Estimate(NamedTuple):
    """A value with the interval that holds the true one in 95 of 100 such experiments."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        return {name: round(number, 6) for name, number in self._asdict().items()}


def wilson(successes: float, trials: int) -> Estimate | None:
    """Return the rate with its score interval (Wilson 1927, without continuity correction).

    None without trials. It never leaves 0 to 1, and says something where all or none succeeded:

    >>> [round(number, 4) for number in wilson(8, 10)]
    [0.8, 0.4902, 0.9433]
    >>> [round(number, 4) for number in wilson(0, 20)]
    [0.0, 0.0, 0.1611]
    """
    if trials == 0:
        return None
    rate, z2 = successes / trials, Z * Z
    centre = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = rate * (1 - rate) / trials + z2 / (4 * trials * trials)
    half = Z * math.sqrt(spread) / (1 + z2 / trials)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Estimate(rate, low, high)


def bootstrap_mean(
    values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate | None:
    """Return the mean with its percentile bootstrap interval (Efron 1979); None without values.

    Each value must stand for itself: of several samples of one task and seed, give their mean.

    >>> bootstrap_mean([0.5, 0.5, 0.5])
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    if not values:
        return None
    count = len(values)
    mean = math.fsum(values) / count
    if min(values) == max(values):
        return Estimate(mean, mean, mean)
    draw = random.Random(seed)
    means = sorted(math.fsum(draw.choices(values, k=count)) / count for _ in range(resamples))
    return Estimate(mean, percentile(means, 0.025), percentile(means, 0.975))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which `share` of `ordered` lies, interpolated between neighbours.

    >>> percentile([1, 2, 3, 4, 5], 0.5), percentile([0, 10], 0.25)
    (3.0, 2.5)
    """
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def pass_at_k(samples: int, successes: int, k: int) -> float:
    """Return the chance that at least one of `k` samples succeeds, estimated from `samples` of them.

    Unbiased: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, "Evaluating Large Language Models Trained
    on Code", equation 1). Raises ValueError for k > samples.

    >>> pass_at_k(4, 1, 1), round(pass_at_k(10, 3, 5), 6), pass_at_k(4, 0, 4)
    (0.25, 0.916667, 0.0)
    """
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} can't be estimated from {samples} samples")
    return 1.0 - math.comb(samples - successes, k) / math.comb(samples, k)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value that both are equally good (McNemar 1947, binomial form).

    Counts pairs in which only the first, and only the second, succeeded; or, of pairs with more than
    two outcomes, in which the first, and the second, did better (the sign test is the same formula).

    >>> round(mcnemar(1, 9), 6), mcnemar(0, 0), mcnemar(5, 5)
    (0.021484, 1.0, 1.0)
    """
    pairs = only_first + only_second
    if pairs == 0:
        return 1.0
    tail = sum(math.comb(pairs, n) for n in range(min(only_first, only_second) + 1))
    return float(min(1.0, 2 * tail / 2**pairs))
