"""A trainer as a command: `python -m training.trainers.KIND RUN_DIR [--dry-run]`.

SIGTERM and SIGINT ask it to checkpoint and stop; how it ended is in status.json and the exit status.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # weights come from a folder or a store, never a hub

import torch

from agent.serving.manifest import CheckpointError
from training.runs.rundir import RunDir, RunDirError, Status
from training.trainers.settings import Settings

C = TypeVar("C", bound=Settings)


class Refused(ValueError):
    """The trainer does not begin; the message names what is wrong and the way out."""


class Stop:
    """Whether somebody has asked this process to stop."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    def _hear(self, number: int, frame: object) -> None:
        self.asked = True


def main(
    kind: str,
    config: type[C],
    train: Callable[[RunDir, C, Stop], Status],
    show: Callable[[RunDir, C], None],
    argv: Sequence[str] | None = None,
) -> int:
    """Run `train`, or `show` for a dry run; returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m training.trainers.{kind}")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="print a sample with its loss mask")
    options = parser.parse_args(argv)
    run, stop = RunDir(options.run_dir), Stop()
    stop.listen()
    writes = os.environ.get("RANK", "0") == "0" and not options.dry_run
    try:
        settings = config.read(run.config())
        if settings.threads:
            torch.set_num_threads(settings.threads)
        if options.dry_run:
            show(run, settings)
            return 0
        status = train(run, settings, stop)
    except (Refused, RunDirError, CheckpointError) as error:
        print(error, file=sys.stderr)
        if writes:
            run.write_status(Status("failed", error=str(error)))
        return 1
    except Exception as error:  # the status file is how a supervisor learns of it
        traceback.print_exc()
        if writes:
            run.write_status(Status("failed", error=f"{type(error).__name__}: {error}"))
        return 1
    if writes:
        run.write_status(status)
    print(f"{status.state} at step {status.step} of {status.total_steps}")
    return 0
