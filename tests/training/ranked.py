"""Runs of SFT one after the other, in each of several processes: `python -m tests.training.ranked PLAN`.

PLAN is a JSON list of [run directory, step to stop at or 0].
"""

from __future__ import annotations

import json
import sys

from training.runs.rundir import RunDir
from training.trainers import sft
from training.trainers.job import Stop


class StopAt(Stop):
    """Asked to stop in one process, by what it is asked at that step; the others have to follow."""

    def __init__(self, step: int, rank: int) -> None:
        super().__init__()
        self._left = step if rank == 1 else 0

    def __getattribute__(self, name: str) -> object:
        if name == "asked" and object.__getattribute__(self, "_left"):
            self._left -= 1
            return self._left == 0
        return object.__getattribute__(self, name)


def main(plan: list[tuple[str, int]], rank: int) -> None:
    for directory, step in plan:
        run = RunDir(directory)
        config = sft.Config.read(run.config())
        status = sft.train(run, config, StopAt(step, rank))
        if rank == 0:
            run.write_status(status)


if __name__ == "__main__":
    import os

    main(json.loads(sys.argv[1]), int(os.environ["RANK"]))
