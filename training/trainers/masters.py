"""Weights in two precisions: what the optimiser moves, and what the model computes with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


class Masters:
    """fp32 weights behind a model that computes in `dtype`; the optimiser only sees these.

    In fp32 they are the model's own parameters and nothing is copied.
    """

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names = [name for name, _ in named]
        self.low = [p for _, p in named]
        same = dtype == torch.float32
        self.full = self.low if same else [p.detach().float().clone() for p in self.low]
        model.to(dtype)

    def take_gradients(self) -> None:
        if self.full is not self.low:
            for full, low in zip(self.full, self.low, strict=True):
                full.grad = None if low.grad is None else low.grad.float()
                low.grad = None

    @torch.no_grad()
    def give_weights(self) -> None:
        if self.full is not self.low:
            for full, low in zip(self.full, self.low, strict=True):
                low.copy_(full)

    def state(self) -> dict[str, torch.Tensor]:
        return {name: p.detach() for name, p in zip(self.names, self.full, strict=True)}

    @torch.no_grad()
    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        for name, p in zip(self.names, self.full, strict=True):
            p.copy_(state[name])
        self.give_weights()
