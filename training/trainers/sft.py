"""Supervised fine-tuning: `python -m training.trainers.sft RUN_DIR [--dry-run]`.

Learns the target (thought and action) of each row, and nothing else: cross-entropy, as the mean over
all target tokens of a step. A text model and a vision-language model take the same path. What a run
is told: training.presets.sft for people, `Config` here. The loop is training.trainers.loop.

A run resumes where its newest checkpoint stands and then gives the same bits as a run that was never
stopped (on a CPU, with the same number of threads and processes).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from training.algos.nll import summed_nll
from training.runs.rundir import RunDir, Status
from training.trainers.job import Stop, main
from training.trainers.learner import Learner, accelerator, open_model
from training.trainers.loop import Fit, fit, total_steps
from training.trainers.rows import IGNORE, coloured, read_rows
from training.trainers.settings import Settings


@dataclasses.dataclass(frozen=True, slots=True)
class Config(Settings):
    """What a run is trained with; `mix` is the weight of each dataset by its name."""

    epochs: float = 3.0
    steps: int = 0
    batch_size: int = 8
    mix: dict[str, float] = dataclasses.field(default_factory=dict)


def summed_loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the weighted sum of the cross-entropy (nats) over the batch's learnt tokens.

    The head, a fifth of a small model, sees the learnt tokens alone, and its logits are never there
    all at once. It is asked inside the model's forward pass: only there are sharded weights whole.
    """
    labels, weights = batch.pop("labels"), batch.pop("weights")
    # From the first column with loss on; one more, as a token is said by the one before it.
    keep = labels.shape[1] - int((labels != IGNORE).any(0).int().argmax()) + 1
    if "pixel_values" not in batch:
        batch["position_ids"] = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
    head = model.get_output_embeddings()

    def of_learnt_tokens(hidden: torch.Tensor) -> torch.Tensor:
        target = labels[:, -(hidden.shape[1] - 1) :]
        learnt = target != IGNORE
        each = weights[:, None].expand_as(target)[learnt]
        return summed_nll(hidden[:, :-1][learnt], head.weight, target[learnt], each)

    head.forward = of_learnt_tokens
    try:
        loss: torch.Tensor = model(**batch, logits_to_keep=keep).logits
    finally:
        del head.forward
    return loss


def train(run: RunDir, config: Config, stop: Stop) -> Status:
    """Train to the end, or until `stop` is asked; returns what became of it."""
    loaded, manifest = open_model(config)
    rows = read_rows(run, loaded, config)
    steps = total_steps(
        rows, config.batch_size, steps=config.steps, epochs=config.epochs, mix=config.mix
    )
    learner = Learner(loaded, manifest, config, accelerator())
    work = Fit(rows, config.batch_size, steps, summed_loss, mix=config.mix)
    return fit(run, config, stop, learner, work)


def show(run: RunDir, config: Config) -> None:
    """Print the first row as the model reads it, and what the run would be."""
    loaded, _ = open_model(config)
    rows = read_rows(run, loaded, config)
    row, longest = rows[0], max(rows, key=lambda row: row.length)
    print(f"row {row.id}: {row.length - row.learnt} tokens without loss, {row.learnt} with")
    print(coloured(row, loaded))
    steps = total_steps(
        rows, config.batch_size, steps=config.steps, epochs=config.epochs, mix=config.mix
    )
    print(f"{len(rows)} rows, {steps} steps, longest {longest.length} tokens ({longest.id})")


if __name__ == "__main__":
    raise SystemExit(main("sft", Config, train, show))
