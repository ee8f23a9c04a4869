"""One model out of several: theta = sum of alpha_k theta_k, over models from the same SFT start.

UI-TARS-2 (arXiv 2509.02544), after linear mode connectivity. Sums are made in fp32
(fp64 for fp64) and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor


class MergeError(ValueError):
    """Models don't fit together, or the weights are no mixture; the message names what."""


def check_weights(weights: Sequence[float], models: int) -> None:
    """Raise MergeError unless there is one weight per model, none below 0, and their sum is 1."""
    if not models or len(weights) != models:
        raise MergeError(f"{len(weights)} weights for {models} models: one each is needed")
    for place, weight in enumerate(weights):
        if not (math.isfinite(weight) and weight >= 0):
            raise MergeError(f"weight {place + 1} is {weight:g}: it must be 0 or more")
    if abs(math.fsum(weights) - 1) > 1e-6:
        raise MergeError(f"the weights add up to {math.fsum(weights):g} instead of 1")


@torch.no_grad()
def merge_tensor(name: str, tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return the weighted sum in the first one's dtype.

    Raises MergeError, naming the tensor, where shapes differ, or whole numbers do: those are
    places and counts, of which there is no mean.
    """
    first = tensors[0]
    for place, other in enumerate(tensors[1:], start=2):
        if other.shape != first.shape:
            shapes = f"{tuple(other.shape)} in model {place}, {tuple(first.shape)} in model 1"
            raise MergeError(f"{name} has shape {shapes}")
    if not first.is_floating_point():
        for place, other in enumerate(tensors[1:], start=2):
            if not torch.equal(first, other):
                raise MergeError(f"{name} holds other whole numbers in model {place} than in 1")
        return first.clone()
    precise = torch.float64 if first.dtype == torch.float64 else torch.float32
    total = torch.zeros_like(first, dtype=precise)
    for tensor, weight in zip(tensors, weights, strict=True):
        total.add_(tensor.to(precise), alpha=weight)
    return total.to(first.dtype)


def merge(
    states: Sequence[Mapping[str, Tensor]], weights: Sequence[float]
) -> Iterator[tuple[str, Tensor]]:
    """Return (name, merged tensor) one after the other, in the first model's order.

    A mapping may load a tensor when it is asked for: only one tensor of each model is in memory at
    a time. `dict(merge(...))` is the whole. Weights and names are checked at once, shapes as they
    come; raises MergeError.
    """
    check_weights(weights, len(states))
    names = set(states[0])
    for place, state in enumerate(states[1:], start=2):
        if missing := sorted(names - set(state)):
            raise MergeError(f"model {place} has no {missing[0]} ({len(missing)} missing)")
        if more := sorted(set(state) - names):
            raise MergeError(f"model 1 has no {more[0]} of model {place} ({len(more)} missing)")
    return (
        (name, merge_tensor(name, [state[name] for state in states], weights)) for name in states[0]
    )
