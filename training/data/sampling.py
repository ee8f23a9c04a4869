"""Rejection sampling: which of the successes of a policy are taken. Pure.

After RFT in UI-TARS-2's flywheel; how many samples of a prompt were kept is not published. The
shortest ones are taken: a long success has detours, which would be learnt as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Success:
    """One episode with V(s) = 1; `task` names family and task."""

    id: int
    task: str
    seed: int
    steps: int


def surplus(
    successes: Iterable[Success], *, per_seed: int = 0, per_task: int = 0, max_steps: int = 0
) -> dict[int, str]:
    """Return the ids that are not taken, each with the reason; 0 is no limit.

    At most `per_seed` of a task and seed, at most `per_task` of a task, none longer than `max_steps`.
    The shortest first, then the smallest id: the same successes give the same choice.
    """
    left: dict[int, str] = {}
    seeds: Counter[tuple[str, int]] = Counter()
    tasks: Counter[str] = Counter()
    for one in sorted(successes, key=lambda one: (one.steps, one.id)):
        key = (one.task, one.seed)
        if max_steps and one.steps > max_steps:
            left[one.id] = f"a success of more than {max_steps} steps"
        elif per_seed and seeds[key] >= per_seed:
            left[one.id] = f"a success beyond the {per_seed} shortest of its task and seed"
        elif per_task and tasks[one.task] >= per_task:
            left[one.id] = f"a success beyond the {per_task} shortest of its task"
        else:
            seeds[key] += 1
            tasks[one.task] += 1
    return left
