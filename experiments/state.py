"""Where the experiments keep what they made: one JSON file per finished cell, checkpoints beside it."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from training.evaluations.statistics import bootstrap_mean, wilson
from training.runs.rundir import write_atomic

ROOT = Path("var/experiments")
T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}
"""The 97.5 % point of Student's t for so many seeds."""

Cell = dict[str, Any]


def cell(path: Path, make: Callable[[], Cell]) -> Cell:
    """Return a finished cell, or make it and keep it whole: what was killed is made again."""
    if path.exists():
        found: Cell = json.loads(path.read_text(encoding="utf-8"))
        return found
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(made, indent=1, sort_keys=True) + "\n")
    return made


def percent(solved: Sequence[bool]) -> str:
    """Return a success rate with its 95 % interval over episodes (Wilson)."""
    found = wilson(sum(solved), len(solved))
    if found is None:
        return "none"
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def over_seeds(rates: Sequence[float]) -> str:
    """Return the mean of one rate per seed in percent, with its 95 % interval by Student's t."""
    mean = statistics.fmean(rates)
    if len(rates) < 2:
        return f"{100 * mean:.1f} (one seed)"
    half = T_975[min(len(rates), 8)] * statistics.stdev(rates) / math.sqrt(len(rates))
    return f"{100 * mean:.1f} ± {100 * half:.1f}"


def gain(before: Sequence[float], after: Sequence[float]) -> str:
    """Return the mean of paired differences in percentage points with its bootstrap interval."""
    found = bootstrap_mean([b - a for a, b in zip(before, after, strict=True)])
    if found is None:
        return "none"
    return f"{100 * found.value:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; every column but the first is set to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(value) for value in line)} |" for line in lines)
