"""Passes of a model over token rows, in parts that fit the memory and shared among the processes.

Whatever the split, the result is the same but for rounding: measures come back whole on every
process, and a loss is a sum that was divided by counts of the whole batch before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from training.trainers.batches import micro_batches
from training.trainers.job import Refused
from training.trainers.learner import Learner
from training.trainers.settings import Settings
from training.trainers.token_rows import TokenRow, collate, places

Read = Callable[[Any, dict[str, Tensor], Tensor], Tensor]
"""(model, batch, sampled) of token_rows.collate -> one number per sampled token."""

Loss = Callable[[Any, dict[str, Tensor], Tensor, Tensor], tuple[Tensor, Mapping[str, Tensor]]]
"""(model, batch, sampled, places) -> (what is minimised, sums to be shown), places on the CPU."""


def parts_of(
    rows: Sequence[TokenRow], most: int, *, rank: int, world: int, together: bool
) -> list[tuple[list[TokenRow], bool]]:
    """Return this process's parts of `rows`, and whether each is real.

    `together`: all processes must ask their models equally often, as sharded weights are put together
    by all of them; one that runs out is given the first row again, to be counted with weight 0. Every
    process has one part at least.
    """
    shares = []
    for process in range(world):
        own = rows[process::world]
        parts = micro_batches([row.length for row in own], most) if own else []
        shares.append([[own[n] for n in part] for part in parts])
    wanted = max(len(share) for share in shares) if together else 1
    idle = [([rows[0]], False)] * max(0, wanted - len(shares[rank]))
    return [(part, True) for part in shares[rank]] + idle


@torch.no_grad()
def measure(
    learner: Learner, rows: Sequence[TokenRow], tokens: int, settings: Settings, read: Read,
    *, model: Any = None,
) -> Tensor:  # fmt: skip
    """Return what `read` says of each of the batch's tokens, (tokens,) in fp32 on the CPU.

    All processes get all of it. `model` is asked instead of the learner's own.
    """
    accelerator = learner.accelerator
    found = torch.zeros(tokens)
    asked = learner.model if model is None else model
    for part, real in _parts(learner, rows, settings):
        batch, sampled = _on_device(part, learner, settings)
        said = read(asked, batch, sampled).float().cpu()
        if real:
            found[places(part)] = said
    whole: Tensor = accelerator.reduce(found.to(accelerator.device), "sum").cpu()
    return whole


def learn(
    learner: Learner, rows: Sequence[TokenRow], settings: Settings, loss: Loss
) -> dict[str, float]:
    """Add the gradients of `loss` over `rows` to the learner's weights; returns the summed figures."""
    accelerator = learner.accelerator
    sums: dict[str, Tensor] = {}
    for part, real in _parts(learner, rows, settings):
        batch, sampled = _on_device(part, learner, settings)
        value, figures = loss(learner.model, batch, sampled, places(part))
        # Gradients are averaged over processes; the loss is a sum.
        accelerator.backward(value * (accelerator.num_processes if real else 0.0))
        for name, figure in figures.items():
            add = figure.detach().double() if real else torch.zeros((), dtype=torch.float64)
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + add.cpu()
    names = sorted(sums)
    whole = accelerator.reduce(
        torch.stack([sums[name] for name in names]).to(accelerator.device), "sum"
    )
    return dict(zip(names, whole.tolist(), strict=True))


def _parts(
    learner: Learner, rows: Sequence[TokenRow], settings: Settings
) -> list[tuple[list[TokenRow], bool]]:
    accelerator = learner.accelerator
    if learner.sharded and len({row.step.messages is None for row in rows}) > 1:
        # Only a pass with pictures puts the vision layers together; the others would wait for ever.
        raise Refused("some prompts have pictures and some none: sharding must be none for them")
    return parts_of(
        rows, settings.micro_tokens,
        rank=accelerator.process_index, world=accelerator.num_processes, together=learner.sharded,
    )  # fmt: skip


def _on_device(
    part: Sequence[TokenRow], learner: Learner, settings: Settings
) -> tuple[dict[str, Tensor], Tensor]:
    device = learner.accelerator.device
    batch, sampled = collate(part, learner.loaded, settings.blobs)
    return {key: tensor.to(device) for key, tensor in batch.items()}, sampled.to(device)
