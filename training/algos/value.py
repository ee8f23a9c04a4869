"""What the critic learns by, and how good it is."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training.algos.masked import masked_mean, masked_sum


def value_loss(
    values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, *, clip: float | None
) -> tuple[Tensor, Tensor]:
    """Return (sum of the loss over the mask, number of tokens at which the clipped error counts).

    All four tensors have the same shape. 0.5 max((V - R)^2, (V' - R)^2), where V' is V held within
    `clip` of the values at the start of the update (PPO's value clipping, as in verl's
    compute_value_loss); None: 0.5 (V - R)^2. The caller divides by the tokens of the whole batch.
    """
    loss = (values - returns) ** 2
    clipped = torch.zeros_like(loss, dtype=torch.bool)
    if clip is not None:
        held = values.clamp(old_values - clip, old_values + clip)
        other = (held - returns) ** 2
        clipped = other > loss
        loss = torch.maximum(loss, other)
    return 0.5 * masked_sum(loss, mask), (clipped & mask.bool()).sum()


@torch.no_grad()
def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float:
    """Return 1 - Var(R - V) / Var(R) over the mask: 1 is perfect, 0 is a constant, below is worse.

    VC-PPO (arXiv 2503.01491) ends value pretraining by it. A constant error doesn't lower it: watch
    the loss too. Where all returns are equal there is nothing to explain and the answer is 0, so
    that no critic passes a gate on such data; neither does one whose values aren't finite.
    """
    returns, values = returns.double(), values.double()
    spread = masked_mean((returns - masked_mean(returns, mask)) ** 2, mask)
    rounding = torch.finfo(torch.float64).eps * masked_mean(returns**2, mask)
    if spread <= rounding:
        return 0.0
    errors = returns - values
    left = masked_mean((errors - masked_mean(errors, mask)) ** 2, mask)
    explained = float(1 - left / spread)
    return explained if math.isfinite(explained) else 0.0
