"""What an evaluation's episodes add up to: per task, per family and over all of it.

Pure: takes values, gives JSON. An episode whose environment broke says nothing about the policy: it is
counted apart and is in no mean.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from training.evaluations.statistics import Estimate, bootstrap_mean, pass_at_k, wilson

FORMAT = 1
SOLVED = 1.0
"""The reward from which an episode counts as a success."""
POINTS = 60
"""How many points a curve has at most."""

Json: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[str, int]
"""A task and a seed: what stands for itself. Several samples of one are no independent evidence."""


@dataclass(frozen=True, slots=True)
class Played:
    """One episode of an evaluation. `lost` counts attempts that a broken environment cost."""

    task: str
    seed: int
    repeat: int
    state: str
    reward: float | None
    score: float | None
    steps: int
    lost: int = 0

    @property
    def family(self) -> str:
        return self.task.partition("/")[0]

    @property
    def pair(self) -> Pair:
        return (self.task, self.seed)

    @property
    def judged(self) -> bool:
        return self.state == "done" and self.reward is not None

    @property
    def success(self) -> bool:
        return self.reward is not None and self.reward >= SOLVED


def results(
    episodes: Sequence[Played], *, tasks: Sequence[Mapping[str, Any]], max_steps: int
) -> Json:
    """Return the summary of everything, of each family and of each task, pass@k and the curve.

    `tasks` are the evaluation's, in order: a task's `reference` is the score that counts as 100 %.
    """
    known = {str(task["id"]): task for task in tasks}
    references = {id: float(task.get("reference") or 0.0) for id, task in known.items()}
    by_task: dict[str, list[Played]] = {id: [] for id in known}
    by_family: dict[str, list[Played]] = defaultdict(list)
    for episode in episodes:
        by_task.setdefault(episode.task, []).append(episode)
        by_family[episode.family].append(episode)
    return {
        "format": FORMAT,
        "overall": summary(episodes, references),
        "families": {name: summary(them, references) for name, them in by_family.items()},
        "tasks": {
            id: summary(them, references)
            | {"reference": references.get(id, 0.0)}
            | {
                key: known[id][key]
                for key in ("reference_from", "oracle", "random")
                if key in known[id]
            }
            for id, them in by_task.items()
        },
        "pass_at_k": passes(episodes),
        "curve": curve(episodes, max_steps),
    }


def summary(episodes: Sequence[Played], references: Mapping[str, float]) -> Json:
    """Return counts and estimates of some episodes; an estimate is null where nothing was judged.

    `success` is a rate, `reward` a mean, `normalised` the mean of 100 * score / reference (0 for a score below 0) over the
    episodes that have both. `steps` is the mean number of steps, `steps_to_success` of the successes.
    """
    judged = [episode for episode in episodes if episode.judged]
    solved = [episode for episode in judged if episode.success]
    states = Counter(episode.state for episode in episodes)
    normalised = [
        (episode.pair, max(0.0, 100.0 * episode.score / references[episode.task]))
        for episode in judged
        if episode.score is not None and references.get(episode.task)
    ]
    return {
        "episodes": len(episodes),
        "judged": len(judged),
        "successes": len(solved),
        "success": _json(rate(judged)),
        "reward": _json(_reward(judged)),
        "normalised": _json(bootstrap_mean(_by_pair(normalised))),
        "steps": _mean([episode.steps for episode in judged]),
        "steps_to_success": _mean([episode.steps for episode in solved]),
        "env_failures": states["broken"],
        "attempts_lost": sum(episode.lost for episode in episodes),
        "cancelled": states["cancelled"],
        "unjudged": states["done"] - len(judged),
        "open": states["waiting"] + states["running"],
    }


def rate(judged: Sequence[Played]) -> Estimate | None:
    """Return the success rate with Wilson's interval.

    Several samples of one task and seed count as one trial with their mean: as if they all told the
    same, which makes the interval rather too wide than too narrow.
    """
    means = _by_pair((episode.pair, float(episode.success)) for episode in judged)
    return wilson(math.fsum(means), len(means))


def curve(episodes: Sequence[Played], max_steps: int) -> list[Json]:
    """Return the success rate against the number of steps allowed: [{"steps", "value", "low", "high"}].

    An episode ends with the step that solves it, and a policy is not told its limit: so a success of
    n steps is one under every limit of at least n, and a failure under every limit up to `max_steps`.
    """
    judged = [episode for episode in episodes if episode.judged]
    if not judged or max_steps < 1:
        return []
    stride = math.ceil(max_steps / POINTS)
    points = []
    for limit in sorted({*range(stride, max_steps + 1, stride), 1, max_steps}):
        means = _by_pair(
            (episode.pair, float(episode.success and episode.steps <= limit)) for episode in judged
        )
        at = wilson(math.fsum(means), len(means))
        assert at is not None
        points.append({"steps": limit, **at.as_dict()})
    return points


def passes(episodes: Sequence[Played]) -> list[Json]:
    """Return pass@k for k = 1, 2, 4 ... up to the samples that there are: [{"k", "value", "pairs"}].

    The mean over the tasks and seeds of which at least k samples were judged; `pairs` counts them.
    """
    samples: dict[Pair, list[bool]] = defaultdict(list)
    for episode in episodes:
        if episode.judged:
            samples[episode.pair].append(episode.success)
    most = max((len(them) for them in samples.values()), default=0)
    found = []
    for k in sorted({most, *(2**n for n in range(most.bit_length()))} - {0}):
        values = [pass_at_k(len(s), sum(s), k) for s in samples.values() if len(s) >= k]
        estimate = bootstrap_mean(values)
        assert estimate is not None
        found.append({"k": k, "pairs": len(values), **estimate.as_dict()})
    return found


def _reward(judged: Sequence[Played]) -> Estimate | None:
    """Return the mean reward; where every one is 0 or 1 it is the success rate, interval included."""
    if all(episode.reward in (0.0, 1.0) for episode in judged):
        return rate(judged)
    return bootstrap_mean(_by_pair((episode.pair, episode.reward or 0.0) for episode in judged))


def _by_pair(values: Iterable[tuple[Pair, float]]) -> list[float]:
    pairs: dict[Pair, list[float]] = defaultdict(list)
    for pair, value in values:
        pairs[pair].append(value)
    return [math.fsum(them) / len(them) for them in pairs.values()]


def _mean(values: Sequence[int]) -> float | None:
    return round(math.fsum(values) / len(values), 3) if values else None


def _json(estimate: Estimate | None) -> dict[str, float] | None:
    return None if estimate is None else estimate.as_dict()
