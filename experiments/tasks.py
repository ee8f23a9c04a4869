"""What the experiments play: ten tasks that RL trains on, ten that it never sees, and their groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Variant = Literal["gui", "sdk"]

STEPS: dict[str, int] = {
    "miniwob/click-button": 3,
    "miniwob/click-test-2": 3,
    "miniwob/click-button-sequence": 4,
    "miniwob/click-dialog-2": 3,
    "miniwob/click-widget": 3,
    "miniwob/focus-text-2": 3,
    "miniwob/identify-shape": 3,
    "miniwob/click-collapsible-nodelay": 4,
    "miniwob/unicode-test": 3,
    "miniwob/generate-number": 6,
    "games/infinity-loop-easy": 10,
    "miniwob/click-link": 3,
    "miniwob/click-color": 3,
    "miniwob/click-option": 4,
    "miniwob/click-checkboxes": 8,
    "miniwob/enter-text": 5,
    "miniwob/navigate-tree": 6,
    "miniwob/click-tab-2-easy": 3,
    "miniwob/odd-or-even": 8,
    "games/lights-out-easy": 8,
}
"""The steps that an episode may have: about twice what the oracle needs."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Which tasks play which part.

    RL trains on `chosen`: what a little SFT solves sometimes, but not nearly always. `rest` it must
    not make worse. `groups` are what the specialists of a merge
    are trained on. In `tooled` a name has to be found on the screen: a shell that greps the screen
    finds it too. In `mendable` a wrong step can be put right.
    """

    chosen: tuple[str, ...]
    rest: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    tooled: tuple[str, ...]
    mendable: tuple[str, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.chosen + self.rest + self.tooled))


_TASKS = tuple(STEPS)
WHOLE = Suite(
    chosen=_TASKS[:10],
    rest=_TASKS[10:],
    groups={"buttons": _TASKS[:4], "widgets": _TASKS[4:8], "reading": _TASKS[8:10]},
    tooled=(
        "miniwob/click-button", "miniwob/click-link", "miniwob/click-option",
        "miniwob/click-checkboxes", "miniwob/navigate-tree", "miniwob/click-tab-2-easy",
    ),
    mendable=(
        "miniwob/click-option", "miniwob/click-checkboxes", "miniwob/enter-text",
        "miniwob/navigate-tree", "games/infinity-loop-easy", "miniwob/odd-or-even",
        "miniwob/generate-number",
    ),
)  # fmt: skip
SMOKE = Suite(
    chosen=("miniwob/click-test-2", "miniwob/focus-text-2"),
    rest=("miniwob/click-button-sequence",),
    groups={"one": ("miniwob/click-test-2",), "other": ("miniwob/focus-text-2",)},
    tooled=("miniwob/click-test-2",),
    mendable=("miniwob/click-test-2",),
)
"""What can be learnt within seconds: enough to see that a command works."""

TOOL = "You may use the shell: it finds a name on the screen."
"""What the instruction says in addition where there is a shell."""

DEMONSTRATIONS = 0
EVALUATION = 10_000
ROLLOUTS = 20_000
"""Where the seeds of the three begin: none of them ever shares one."""


@dataclass(frozen=True, slots=True)
class Case:
    """One episode: a task ("family/name"), its seed, which try it is, and with which interface."""

    task: str
    seed: int
    repeat: int = 0
    variant: Variant = "gui"

    @property
    def group(self) -> str:
        """What GRPO compares: the same task, seed and interface."""
        return f"{self.task}#{self.seed}" + ("" if self.variant == "gui" else f":{self.variant}")

    @property
    def id(self) -> str:
        return f"{self.group}@{self.repeat}"


def cases(
    tasks: Sequence[str], seeds: Iterable[int], *, repeats: int = 1, variant: Variant = "gui"
) -> list[Case]:
    """Return every task with every seed, `repeats` times, the tasks in turn."""
    return [
        Case(task, seed, repeat, variant)
        for seed in seeds
        for task in tasks
        for repeat in range(repeats)
    ]


def endless(
    tasks: Sequence[str], *, seed: int, repeats: int, variants: Sequence[Variant] = ("gui",)
) -> Iterator[Case]:
    """Yield groups of `repeats` cases for ever: the tasks in turn, a new task seed each round."""
    number = ROLLOUTS + 100_000 * seed
    while True:
        for task in tasks:
            for repeat in range(repeats):
                yield Case(task, number, repeat, variants[number % len(variants)])
        number += 1
