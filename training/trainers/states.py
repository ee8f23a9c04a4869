"""What a trainer goes on from, bit for bit: beside its checkpoints, which travel without it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from training.runs.rundir import RunDir

KEPT = 2


def path_of(run: RunDir, step: int) -> Path:
    return run.path / "state" / f"step-{step}.pt"


def save(run: RunDir, step: int, state: Mapping[str, Any]) -> None:
    """Write the state of a step, whole or not at all; only the last two are kept.

    `state` holds tensors, numbers, texts, and lists and dictionaries of them; the random numbers of
    torch are added.
    """
    path = path_of(run, step)
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(".unfinished")
    random = {
        "torch_rng": torch.get_rng_state(),
        "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    torch.save({**state, **random, "step": step}, aside)
    os.replace(aside, path)
    for old in sorted(path.parent.glob("step-*.pt"), key=lambda p: p.stat().st_mtime)[:-KEPT]:
        old.unlink()


def newest(run: RunDir) -> dict[str, Any] | None:
    """Return the newest state that has its checkpoint, with its `step`; None for a fresh start.

    The random numbers of torch go on from there too.
    """
    for step in reversed(run.steps()):
        if path_of(run, step).exists():
            state: dict[str, Any] = torch.load(path_of(run, step), weights_only=True, mmap=True)
            torch.set_rng_state(state["torch_rng"])
            if state["cuda_rng"] and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(state["cuda_rng"])
            print(f"resumed at step {step}")
            return state
    return None
