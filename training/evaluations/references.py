"""What a policy that acts at random reaches, for the column beside the others.

`random.json` maps a task's id to {"checksum", "reward", "episodes"}; a figure of another version of the
task is none. It comes from `python -m sandbox.families.check --random --json`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from sandbox.families import TaskSpec

RANDOM = Path(__file__).with_name("random.json")


def random_reward(task: TaskSpec) -> float | None:
    """Return the mean reward of a random policy at exactly this task; None where nobody measured it."""
    known = _read().get(task.id)
    if known is None or known["checksum"] != task.checksum:
        return None
    return float(known["reward"])


@cache
def _read() -> dict[str, Any]:
    if not RANDOM.exists():
        return {}
    found: dict[str, Any] = json.loads(RANDOM.read_text(encoding="utf-8"))
    return found
