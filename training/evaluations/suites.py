"""Fixed lists of tasks that deployments are compared on, each with a checksum.

A suite names tasks of `sandbox.families`. Its checksum covers its list and what every task's outcome
depends on: two evaluations are of the same thing exactly if it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import families, miniwob
from sandbox.families import TaskSpec, UnknownTask, checksum
from training.errors import Refused

OUT_OF_DOMAIN = "out_of_domain"
MAX_SEEDS = 100_000


class NoSuite(Refused):
    """There is no such suite, or nothing is in it here; the message lists the others."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A list of tasks in a fixed order. `version` rises with every change of the list."""

    name: str
    title: str
    version: int
    tasks: tuple[TaskSpec, ...]

    @property
    def checksum(self) -> str:
        """Return the sha256 of the list and of what the outcome of each task depends on."""
        return checksum(self.name, self.version, [[t.id, t.checksum] for t in self.tasks])


@dataclass(frozen=True, slots=True)
class _Recipe:
    title: str
    version: int
    choose: Callable[[], Sequence[TaskSpec]]


def _family(*names: str) -> list[TaskSpec]:
    present = [families.load(name) for name in names if name in families.NAMES]
    return [task for family in present for task in family.list()]


def _games() -> list[TaskSpec]:
    """Every family that is neither MiniWoB's pages nor a desktop's work is one of games."""
    return _family(*(name for name in families.NAMES if "game" in name))


_RECIPES = {
    "smoke": _Recipe(
        "Three MiniWoB++ pages: does it run at all?",
        1,
        lambda: _tasks("miniwob/click-test", "miniwob/click-button", "miniwob/enter-text"),
    ),
    "miniwob-20": _Recipe(
        "The 20 MiniWoB++ pages that the shipped model was trained on",
        1,
        lambda: _tasks(*(f"miniwob/{page}" for page in miniwob.PAGES)),
    ),
    "miniwob": _Recipe("Every MiniWoB++ page that runs offline", 1, lambda: _family("miniwob")),
    "games": _Recipe(
        "Browser games, in domain",
        1,
        lambda: [task for task in _games() if task.split != OUT_OF_DOMAIN],
    ),
    "lmgame": _Recipe(
        "Games of LMGame-Bench with free code, out of domain",
        1,
        lambda: [task for task in _games() if task.split == OUT_OF_DOMAIN],
    ),
}

NAMES = tuple(_RECIPES)


def seeds(text: str) -> range:
    """Read A:B (B not included) or N (that one seed); raises ValueError saying how to write it."""
    first, colon, last = text.strip().partition(":")
    try:
        start = int(first)
        end = int(last) if colon else start + 1
    except ValueError:
        raise ValueError(f"{text!r} are no seeds: say A:B, B not included, or N") from None
    if not 0 <= start < end <= 2**63:
        raise ValueError(f"{text!r} has no seed: say A:B with 0 <= A < B <= 2**63")
    if end - start > MAX_SEEDS:
        raise ValueError(f"{text!r} are more than {MAX_SEEDS} seeds")
    return range(start, end)


def titles() -> dict[str, str]:
    """Return what each suite is, by name."""
    return {name: recipe.title for name, recipe in _RECIPES.items()}


def load(name: str) -> Suite:
    """Return the suite called `name`, or the one of a JSON file whose path ends in ".json".

    Raises NoSuite naming what is missing.
    """
    if name.endswith(".json"):
        return _read(Path(name))
    if name not in _RECIPES:
        raise NoSuite(f"no suite {name!r}; there are {', '.join(NAMES)}, or give a .json file")
    recipe = _RECIPES[name]
    try:
        tasks = tuple(recipe.choose())
    except (UnknownTask, FileNotFoundError) as error:
        raise NoSuite(f"suite {name}: {error}") from error
    if not tasks:
        raise NoSuite(f"suite {name} is empty: none of its task families is installed")
    return Suite(name, recipe.title, recipe.version, tasks)


def _tasks(*ids: str) -> list[TaskSpec]:
    return [families.task(id)[1] for id in ids]


def _read(path: Path) -> Suite:
    """Read {"name", "title", "version", "tasks": ["family/name", ...]}."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        name, ids, version = str(record["name"]), list(record["tasks"]), int(record["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoSuite(
            f'{path} is no suite: say {{"name": ..., "version": 1, "tasks": ["family/name", ...]}} '
            f"({error!r})"
        ) from error
    if not ids or len(set(ids)) != len(ids):
        raise NoSuite(f"{path}: `tasks` must list at least one task, and none twice")
    try:
        tasks = tuple(_tasks(*map(str, ids)))
    except UnknownTask as error:
        raise NoSuite(f"{path}: {error}") from error
    return Suite(name, str(record.get("title", "")), version, tasks)
