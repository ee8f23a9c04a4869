"""What a phase of an iteration is.

A phase writes nothing on the iteration by itself: `training.iterations.driver` calls these functions
and keeps what they say. `begin` makes the phase's row and links it (in the driver's transaction, under
the iteration's lock); `look` reads that row. What takes long is in `prepare`: in the same transaction,
but before the lock, so that people's verbs need not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from training.iterations import config as configs
from training.iterations.config import IterationConfig
from training.models import Iteration

Name = Iteration.Phase


@dataclass(frozen=True, slots=True)
class Look:
    """What a phase's row says: is it over, and how? `figures` are kept on the iteration."""

    state: Literal["going", "done", "failed"]
    note: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase. `link` is the iteration's field that holds what it made; `serves` whose server it needs.

    `skip` says why the phase is left out of this iteration, "" where it is not.
    """

    name: str
    link: str = ""
    serves: Literal["", "policy", "candidate"] = ""
    skip: Callable[[Iteration], str] = lambda row: ""
    prepare: Callable[[Iteration], object] = lambda row: None
    begin: Callable[[Iteration, Any], None] = lambda row, prepared: None
    look: Callable[[Iteration], Look] = lambda row: Look("done")


def config_of(row: Iteration) -> IterationConfig:
    return configs.read(row.config)


def child_name(row: Iteration, phase: str) -> str:
    """Return the name of what a phase makes; another one after each time it was tried in vain."""
    tries = len(row.phases.get(phase, {}).get("tries", ()))
    return f"{row.name}-{phase}" + (f"-{tries + 1}" if tries else "")
