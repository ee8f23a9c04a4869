"""Every kind of task whose outcome a program can check, by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from sandbox.families.protocol import (
    NoWay,
    Oracle,
    SetupFailed,
    Split,
    Surface,
    TaskFamily,
    TaskSpec,
    UnknownTask,
    checksum,
    find,
)

__all__ = [
    "NAMES", "NoWay", "Oracle", "SetupFailed", "Split", "Surface", "TaskFamily", "TaskSpec",
    "UnknownTask", "checksum", "find", "load", "task",
]  # fmt: skip

_MODULES: dict[str, str] = {
    "miniwob": "sandbox.families.miniwob",
    "games": "sandbox.families.games",
    "lmgame": "sandbox.families.lmgame",
    "osworld": "sandbox.families.osworld",
    "hybrid": "sandbox.families.hybrid",
    "web": "sandbox.families.web",
    "browsing": "sandbox.families.browsing",
}
"""Name of the family -> the module that has it as FAMILY; imported when it is first asked for."""

NAMES = tuple(_MODULES)


@cache
def load(name: str) -> TaskFamily:
    """Return the family called `name`; raises UnknownTask naming the known ones."""
    if name not in _MODULES:
        raise UnknownTask(f"no task family {name!r}; there are: {', '.join(_MODULES)}")
    family: TaskFamily = import_module(_MODULES[name]).FAMILY
    return family


def task(id: str) -> tuple[TaskFamily, TaskSpec]:
    """Return the family and the task of "family/name"; raises UnknownTask."""
    family_name, _, name = id.partition("/")
    family = load(family_name)
    return family, find(family, name)
