"""Episodes whose truth a verifier knows, as many successes as failures, in a fixed and hashed draw."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.families import checksum
from training.errors import Refused
from training.evaluations.results import SOLVED
from training.models import Episode
from trajectory import Outcome


class TooFew(Refused):
    """There are not enough episodes of one outcome; the message says of which."""


@dataclass(frozen=True, slots=True)
class Label:
    """One episode, the sha256 of its trajectory, and whether the verifier gave the full reward."""

    episode: int
    trajectory: str
    truth: int


def draw(*, size: int, families: Iterable[str] = (), seed: int = 0) -> list[Label]:
    """Return `size` labels, half of them successes, spread evenly over the tasks.

    The same episodes and seed give the same draw. Only finished episodes with a verdict and a kept
    trajectory; a trajectory that two episodes share counts once. Raises TooFew.
    """
    rows = Episode.objects.filter(state=Episode.State.DONE).exclude(reward=None)
    rows = rows.exclude(trajectory="").exclude(outcome=Outcome.ENV_FAILURE.value)
    if wanted := list(families):
        rows = rows.filter(family__in=wanted)
    pools: dict[int, dict[str, list[Label]]] = {0: defaultdict(list), 1: defaultdict(list)}
    seen: set[str] = set()
    for pk, family, task, reward, trajectory in rows.order_by("pk").values_list(
        "pk", "family", "task", "reward", "trajectory"
    ):
        if trajectory not in seen:
            seen.add(trajectory)
            label = Label(pk, trajectory, int(reward >= SOLVED))
            pools[label.truth][f"{family}/{task}"].append(label)
    half = size // 2
    chosen: list[Label] = []
    for truth, name in ((1, "successes"), (0, "failures")):
        have = sum(map(len, pools[truth].values()))
        if half < 1 or have < half:
            raise TooFew(
                f"{half} {name} are wanted and there are {have}: play more episodes of tasks that a "
                "program verifies, or ask for fewer"
            )
        chosen += _spread(pools[truth], half, seed)
    return sorted(chosen, key=lambda label: _place(label, seed))


def sha256_of(labels: Iterable[Label]) -> str:
    """Return the hash of a labelled set: of its trajectories and their truths, in order."""
    return checksum([[label.trajectory, label.truth] for label in labels])


def _spread(pool: dict[str, list[Label]], count: int, seed: int) -> list[Label]:
    """Take from each task in turn, so that no task outweighs the others where it need not."""
    queues = [
        sorted(pool[task], key=lambda label: _place(label, seed), reverse=True)
        for task in sorted(pool)
    ]
    chosen: list[Label] = []
    while len(chosen) < count:
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop())
    return chosen


def _place(label: Label, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{label.trajectory}".encode()).hexdigest()
