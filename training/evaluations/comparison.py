"""Two evaluations beside each other, on the tasks and seeds that both have."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from training.evaluations.results import Pair, Played
from training.evaluations.statistics import Estimate, bootstrap_mean, mcnemar

SURE = 0.05
"""Below this p-value, and with an interval that leaves out 0, a difference is called one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much the second is better than the first, on `pairs` tasks and seeds of both.

    `first`, `second`: success rates on these. `success`, `reward`: the mean of the paired differences,
    second minus first. `only_first`, `only_second`: pairs that one of them solved and the other did
    not (or less often, where a pair was sampled several times). `p`: McNemar's exact test on these.
    """

    pairs: int
    first: float
    second: float
    success: Estimate
    reward: Estimate
    only_first: int
    only_second: int
    p: float

    @property
    def sure(self) -> bool:
        """Whether 95 % confidence holds: by the interval and by the test, which few pairs fail."""
        return (self.success.low > 0 or self.success.high < 0) and self.p < SURE

    def in_words(self, first: str, second: str) -> str:
        """Say in one sentence which is better, and how sure that is."""
        size = f"{100 * abs(self.success.value):.1f} points"
        low, high = sorted((abs(self.success.low), abs(self.success.high)))
        test = f", McNemar's exact p = {self.p:.3g}"
        if self.sure:
            better, worse = (second, first) if self.success.value > 0 else (first, second)
            return (
                f"{better} is better than {worse} with confidence: {size} more successes "
                f"(95 % interval {100 * low:.1f} to {100 * high:.1f}{test}) on {self.pairs} "
                "tasks and seeds."
            )
        return (
            f"No difference is shown between {first} and {second} on {self.pairs} tasks and seeds: "
            f"{100 * self.success.value:+.1f} points for {second} (95 % interval "
            f"{100 * self.success.low:+.1f} to {100 * self.success.high:+.1f}{test})."
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "success": self.success.as_dict(),
            "reward": self.reward.as_dict(),
            "sure": self.sure,
        }


def compare(first: Sequence[Played], second: Sequence[Played]) -> Difference | None:
    """Return the paired difference; None where no task and seed was judged in both.

    The interval is a bootstrap over pairs: a task and seed is drawn with both of its results.
    """
    left, right = _by_pair(first), _by_pair(second)
    shared = [pair for pair in left if pair in right]
    if not shared:
        return None
    solved = [(_rate(left[pair]), _rate(right[pair])) for pair in shared]
    success = bootstrap_mean([b - a for a, b in solved])
    reward = bootstrap_mean([_reward(right[pair]) - _reward(left[pair]) for pair in shared])
    assert success is not None and reward is not None
    only_first = sum(a > b for a, b in solved)
    only_second = sum(b > a for a, b in solved)
    return Difference(
        pairs=len(shared),
        first=math.fsum(a for a, _ in solved) / len(shared),
        second=math.fsum(b for _, b in solved) / len(shared),
        success=success,
        reward=reward,
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second),
    )


def _by_pair(episodes: Sequence[Played]) -> dict[Pair, list[Played]]:
    pairs: dict[Pair, list[Played]] = defaultdict(list)
    for episode in episodes:
        if episode.judged:
            pairs[episode.pair].append(episode)
    return pairs


def _rate(episodes: Sequence[Played]) -> float:
    return sum(episode.success for episode in episodes) / len(episodes)


def _reward(episodes: Sequence[Played]) -> float:
    return math.fsum(episode.reward or 0.0 for episode in episodes) / len(episodes)
