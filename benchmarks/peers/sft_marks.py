"""What both SFT drivers say of themselves: after each step how many real tokens, when, at what CPU time.

A driver prints {"marks": [[tokens, wall, cpu], ...], "before": VmHWM in MiB before the model was there}
and then waits for a line, so that its memory can be looked at from outside.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def peak_mib(pid: int | str = "self") -> float:
    """Return VmHWM, the most memory that a process ever had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


class Marks:
    def __init__(self) -> None:
        self.before = peak_mib()
        self.tokens: list[int] = []
        self.marks: list[tuple[int, float, float]] = []

    def count(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Count a batch by its attention mask; returns it."""
        self.tokens.append(int(batch["attention_mask"].sum()))
        return batch

    def step(self) -> None:
        """Mark the end of an optimiser step."""
        done = self.tokens[len(self.marks)]
        self.marks.append((done, time.perf_counter(), time.process_time()))

    def tell(self) -> None:
        print(json.dumps({"marks": self.marks, "before": self.before}), flush=True)
        sys.stdin.readline()
