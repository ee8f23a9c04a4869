"""How good a checkpoint is: success on seeds that nothing was trained on, per task and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.arena import Arena
from experiments.tasks import EVALUATION, Case, Variant, cases

SEED = 7
"""Of the samples of every evaluation: two checkpoints are asked with the same dice."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluation found, one entry per episode, in the order of the cases."""

    tasks: list[str]
    seeds: list[int]
    rewards: list[float]
    steps: list[int]

    @classmethod
    def of(cls, record: dict[str, Any]) -> Result:
        return cls(record["tasks"], record["seeds"], record["rewards"], record["steps"])

    def as_dict(self) -> dict[str, Any]:
        return {
            "tasks": self.tasks, "seeds": self.seeds, "rewards": self.rewards, "steps": self.steps,
        }  # fmt: skip

    def solved(self, tasks: Sequence[str] | None = None, *, within: int = 10**6) -> list[bool]:
        """Return which episodes of `tasks` (None: all) were solved, in at most `within` steps."""
        return [
            reward >= 1 and steps <= within
            for task, reward, steps in zip(self.tasks, self.rewards, self.steps, strict=True)
            if tasks is None or task in tasks
        ]

    def rate(self, tasks: Sequence[str] | None = None, *, within: int = 10**6) -> float:
        """Return the share that was solved."""
        solved = self.solved(tasks, within=within)
        return sum(solved) / max(1, len(solved))


def measure(
    arena: Arena,
    checkpoint: Path,
    tasks: Sequence[str],
    *,
    seeds: int,
    repeats: int = 1,
    variant: Variant = "gui",
    max_steps: int = 0,
    first: int = EVALUATION,
) -> Result:
    """Play every task on `seeds` seeds, sampling at temperature 1; `max_steps` 0: as in training."""
    arena.load(checkpoint)
    wanted = cases(tasks, range(first, first + seeds), repeats=repeats, variant=variant)
    found: dict[Case, tuple[float, int]] = {}
    for episode in arena.sample(wanted, seed=SEED, max_steps=max_steps):
        found[episode.case] = (episode.reward, len(episode.trajectory.steps))
    return Result(
        [case.task for case in wanted],
        [case.seed for case in wanted],
        [found[case][0] for case in wanted],
        [found[case][1] for case in wanted],
    )
