"""Weights in two precisions: what the optimiser moves, and what the model computes with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist

BUCKET = 1 << 24  # numbers that are summed over processes at once


class Masters:
    """fp32 weights behind a model that computes in `dtype`; the optimiser only sees these.

    In fp32 they are the model's own parameters and nothing is copied. Every process has them whole:
    what several processes found is averaged here, in fp32.
    """

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        self.model = model
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names = [name for name, _ in named]
        self.low = [p for _, p in named]
        same = dtype == torch.float32
        self.full = self.low if same else [p.detach().float().clone() for p in self.low]
        # Not model.to(dtype): the angles of the rotary embedding are a buffer, and in bfloat16 a
        # token at place 1000 would stand some places off from where the policy server has it.
        for p in model.parameters():
            p.data = p.data.to(dtype)

    def take_gradients(self) -> None:
        if self.full is not self.low:
            for full, low in zip(self.full, self.low, strict=True):
                full.grad = None if low.grad is None else low.grad.float()
                low.grad = None
        if dist.is_initialized() and dist.get_world_size() > 1:
            average_gradients(self.full)

    @torch.no_grad()
    def give_weights(self) -> None:
        if self.full is not self.low:
            torch._foreach_copy_(self.low, self.full)

    def state(self) -> dict[str, torch.Tensor]:
        return {name: p.detach() for name, p in zip(self.names, self.full, strict=True)}

    @torch.no_grad()
    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        for name, p in zip(self.names, self.full, strict=True):
            p.copy_(state[name])
        self.give_weights()

    def optimiser_state(self, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        return optimiser.state_dict()

    def restore_optimiser(self, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        optimiser.load_state_dict(state)

    def to_save(self) -> dict[str, torch.Tensor] | None:
        """Return what save_pretrained is to write; None for what the model holds."""
        return None


@torch.no_grad()
def average_gradients(weights: list[torch.Tensor]) -> None:
    """Average the gradients over processes; a weight without one anywhere stays without.

    A process may lack one that others have: its rows may hold no picture, or it may have no row.
    """
    some = torch.tensor([float(p.grad is not None) for p in weights], device=weights[0].device)
    dist.all_reduce(some)
    found = [p for p, count in zip(weights, some.tolist(), strict=True) if count]
    for bucket in _buckets(found):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([grad.reshape(-1) for grad in grads])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            p.grad = part.view_as(p)


def _buckets(weights: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    bucket: list[torch.Tensor] = []
    for p in weights:
        if bucket and sum(q.numel() for q in bucket) + p.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(p)
    if bucket:
        yield bucket
