"""The shipped trainers as subprocesses over run directories, as the supervisor starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from training.data.rows import LeftOut, PromptFormat, Row, rows
from training.presets import fields_of, read_config
from training.runs.rundir import RunDir
from trajectory import Trajectory

FORM = PromptFormat("element", "elements")
COMMON: dict[str, Any] = {
    "lora_rank": 0, "max_tokens": 512, "micro_tokens": 6144, "save_every": 100_000,
}  # fmt: skip
THREADS = 1
"""Of a trainer: the other core plays."""


class TrainerFailed(Exception):
    """A trainer ended without its last checkpoint; the message ends with what it printed last."""


def prepared(
    kind: str,
    path: Path,
    *,
    base: Path,
    config: Mapping[str, object],
    lines: Iterable[str] = (),
    **more: object,
) -> RunDir:
    """Make the directory of a run, with the kind's defaults for what `config` does not say.

    `more` is what a supervisor adds to what people choose: the critic, the sources of a merge.
    """
    fields = {field.name for field in fields_of(kind)}
    chosen = {key: value for key, value in {**COMMON, **config}.items() if key in fields}
    whole: dict[str, object] = dict(read_config(kind, chosen))
    whole |= {"threads": THREADS, "base": str(base.absolute()), "version": path.name}
    return RunDir.create(path, config=whole | more, lines=lines)


def begun(kind: str, run: RunDir) -> subprocess.Popen[bytes]:
    """Start the trainer of a prepared run; what it prints goes to its log."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "HF_HUB_OFFLINE": "1"}
    with run.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"training.trainers.{kind}", str(run.path)],
            stdout=log, stderr=log, env=environment,
        )  # fmt: skip


def newest(run: RunDir) -> Path:
    """Return the last checkpoint of a run that succeeded; raises TrainerFailed."""
    status = run.status()
    if status.state != "succeeded" or not run.steps():
        tail = run.log.read_text(errors="replace")[-1500:] if run.log.exists() else ""
        raise TrainerFailed(f"{run.path} is {status.state}: {status.error}\n{tail}")
    return run.checkpoint(run.steps()[-1])


def finished(kind: str, run: RunDir) -> Path:
    """Run a prepared run to its end, unless it is there already; returns its last checkpoint.

    Raises TrainerFailed.
    """
    if run.status().state != "succeeded":
        begun(kind, run).wait()
    return newest(run)


def sft(
    path: Path,
    base: Path,
    trajectories: Iterable[Trajectory],
    *,
    epochs: float,
    seed: int,
    rate: float = 1e-3,
    batch_size: int = 32,
    save_every: int = 100_000,
) -> RunDir:
    """Train all weights on what solved episodes did; returns the finished run."""
    config = {
        "epochs": epochs, "batch_size": batch_size, "learning_rate": rate, "seed": seed,
        "warmup_steps": 5, "save_every": save_every,
    }  # fmt: skip
    lines = [row.to_line() for row in learnable(trajectories)]
    run = prepared("sft", path, base=base, config=config, lines=lines)
    finished("sft", run)
    return run


def learnable(trajectories: Iterable[Trajectory]) -> list[Row]:
    """Return the rows of what can be said in elements."""
    return [row for row in rows(trajectories, FORM) if not isinstance(row, LeftOut)]
