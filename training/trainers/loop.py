"""The loop of the trainers that learn from fixed rows: SFT, CT, ORM.

A step is one batch of rows. Its loss is a sum over tokens divided by a count over the whole batch, so
it does not depend on how the batch is split into forward passes and processes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from training.algos.schedule import cosine
from training.runs.rundir import RunDir, Status
from training.trainers import states
from training.trainers.batches import micro_batches, plan, steps_per_epoch
from training.trainers.job import Refused, Stop
from training.trainers.learner import Learner
from training.trainers.rows import Row, collate
from training.trainers.settings import Settings

Loss = Callable[[Any, dict[str, torch.Tensor]], torch.Tensor]
"""(model, batch of `rows.collate`) -> the summed loss of the batch, a scalar."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is fitted to what: `mix` weighs the sources of the rows, `look` adds to a step's metrics."""

    rows: Sequence[Row]
    batch_size: int
    steps: int
    loss: Loss
    mix: Mapping[str, float] = field(default_factory=dict)
    look: Callable[[int], dict[str, float]] = lambda step: {}


def total_steps(
    rows: Sequence[Row], batch_size: int, *, steps: int, epochs: float, mix: Mapping[str, float]
) -> int:
    """Return `steps`, or where that is 0 as many as the epochs take."""
    return steps or max(1, round(epochs * steps_per_epoch(rows, batch_size, mix=mix)))


def fit(run: RunDir, settings: Settings, stop: Stop, learner: Learner, work: Fit) -> Status:
    """Train to the end, or until `stop` is asked; returns what became of it."""
    accelerator, total = learner.accelerator, work.steps
    main, world, rank = (
        accelerator.is_main_process, accelerator.num_processes, accelerator.process_index,
    )  # fmt: skip
    if learner.sharded and len({bool(row.record.get("images")) for row in work.rows}) > 1:
        # Only a pass with pictures puts the vision layers together; the others would wait for ever.
        raise Refused("some rows have pictures and some have none: sharding must be none for them")
    first = 0
    if state := states.newest(run):
        learner.restore(state["learner"])
        first = int(state["step"])
    if main:
        print(f"{len(work.rows)} rows, {total} steps, {learner.size:,} weights trained")
        run.cut_metrics(first)
        run.write_status(Status("running", first, total, os.getpid()))

    def keep(step: int) -> None:
        state = {"learner": learner.state(), "total_steps": total}
        if main:
            states.save(run, step, state)
        learner.write(run.checkpoint(step), f"{settings.version or run.path.name}-step-{step}")

    begun, saved, step, halted = time.monotonic(), first, first, False
    batches = plan(work.rows, work.batch_size, mix=work.mix, seed=settings.seed, first=first)
    for numbers in batches:
        if step >= total or halted:
            break
        step += 1
        started = time.monotonic()
        shares = [numbers[r::world] or numbers[:1] for r in range(world)]
        mine = shares[rank]
        share = 1.0 if numbers[rank::world] else 0.0  # a short last batch may leave ranks without
        passes = max(
            len(micro_batches([work.rows[n].length for n in part], settings.micro_tokens))
            for part in shares
        )
        # The mean is over the learnt tokens of the whole step, on every process alike.
        count = sum(work.rows[n].learnt * work.rows[n].weight for n in numbers)
        rate = cosine(step, total, warmup=settings.warmup_steps, height=settings.learning_rate)
        loss = backward(
            learner, [work.rows[n] for n in mine], settings, work.loss, share / count, passes=passes
        )
        norm = learner.step(rate)
        # All processes stop at the same step, whichever of them was told to.
        word = torch.stack([loss, torch.tensor(float(stop.asked), device=loss.device)])
        value, told = accelerator.reduce(word, "sum").tolist()
        halted = told > 0
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss of step {step} is {value}: lower the learning rate")
        now = time.monotonic()
        looked = work.look(step)
        if main:
            run.append_metrics({
                "step": step, "loss": round(value, 6), "lr": rate, "grad_norm": round(norm, 6),
                "tokens_per_s": round(sum(work.rows[n].length for n in numbers) / (now - started), 1),
                "eta_s": round((now - begun) / (step - first) * (total - step), 1),
                "time": time.time(), **looked,
            })  # fmt: skip
        if (settings.save_every and step % settings.save_every == 0) or step == total:
            keep(step)
            saved = step
        if main:
            newest = f"checkpoints/step-{saved}" if saved else ""
            run.write_status(Status("running", step, total, os.getpid(), checkpoint=newest))
    if step > saved:
        keep(step)
        saved = step
    accelerator.wait_for_everyone()  # none ends before what it may go on from is written
    newest = f"checkpoints/step-{saved}" if saved else ""
    return Status("succeeded" if step >= total else "cancelled", step, total, checkpoint=newest)


def backward(
    learner: Learner,
    rows: Sequence[Row],
    settings: Settings,
    loss: Loss,
    scale: float,
    *,
    passes: int = 0,
) -> torch.Tensor:
    """Add the gradients of `scale` times the summed loss of `rows`; returns that, detached.

    `passes` is how many forward passes the process with most of them makes: sharded weights are put
    together by all processes, so the others repeat a pass without its loss.
    """
    accelerator = learner.accelerator
    value = torch.zeros((), device=accelerator.device)
    parts = micro_batches([row.length for row in rows], settings.micro_tokens)
    idle = max(0, passes - len(parts)) if learner.sharded else 0
    for at, part in enumerate(parts + parts[-1:] * idle):
        batch = {
            key: tensor.to(accelerator.device)
            for key, tensor in collate(
                [rows[n] for n in part], learner.loaded, settings.blobs
            ).items()
        }
        piece = (scale if at < len(parts) else 0.0) * loss(learner.model, batch)
        # Gradients are averaged over processes; the loss is a sum.
        accelerator.backward(piece * accelerator.num_processes)
        value += piece.detach()
    return value
