"""How a task was judged: one shape for every kind of task, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """What a verifier says about a computer as it is now.

    `reward` is a scalar from 0 to 1, None where nothing can be said. `done` is whether the task itself
    ended, by being solved, lost or over. `score` is the task's own number (points, level), where it has
    one; families state the reference by which it becomes a reward. `metadata` names at least "family",
    "task", "version" and "checksum" where a family judged.
    """

    reward: float | None
    detail: str
    done: bool
    score: float | None = None
    metadata: Mapping[str, str] = MappingProxyType({})

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: {"reward", "done", "score", "detail", "metadata"}."""
        return {
            "reward": self.reward,
            "done": self.done,
            "score": self.score,
            "detail": self.detail,
            "metadata": dict(self.metadata),
        }
