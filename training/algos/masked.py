"""Means and variances over the tokens that a mask names.

`reduce` sums a tensor over all processes; with it every process gets the statistics of the whole
batch, whatever share of it is its own. Without it a batch is what is here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Reduce = Callable[[Tensor], Tensor]


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Return the sum of `values` (any shape) where `mask` (same shape) is not 0, as a scalar.

    What stands outside the mask doesn't count, not even a nan. fp64 stays, all else is summed in
    fp32: bf16 can't even count beyond 256.
    """
    precise = torch.float64 if values.dtype == torch.float64 else torch.float32
    return torch.where(mask.bool(), values, values.new_zeros(())).sum(dtype=precise)


def masked_mean(values: Tensor, mask: Tensor, *, reduce: Reduce | None = None) -> Tensor:
    """Return the mean over the mask, a scalar; 0 where the mask is empty."""
    total = masked_sum(values, mask)
    both = torch.stack([total, mask.bool().sum().to(total.dtype)])
    both = reduce(both) if reduce else both
    return both[0] / both[1].clamp(min=1)


def masked_var(
    values: Tensor, mask: Tensor, *, unbiased: bool = True, reduce: Reduce | None = None
) -> Tensor:
    """Return the variance over the mask, a scalar.

    `unbiased` divides by count - 1 (Bessel), as verl's masked_var does; one token or none has
    variance 0, where verl raises.
    """
    mean = masked_mean(values, mask, reduce=reduce)
    variance = masked_mean((values - mean) ** 2, mask, reduce=reduce)
    count = mask.bool().sum().to(mean.dtype)
    count = reduce(count) if reduce else count
    return variance * count / (count - 1).clamp(min=1) if unbiased else variance


def masked_whiten(
    values: Tensor, mask: Tensor, *, shift_mean: bool = True, reduce: Reduce | None = None
) -> Tensor:
    """Return (values - mean) / sqrt(var + 1e-8) with unbiased variance; 0 outside the mask.

    Without `shift_mean` the mean is added again afterwards. As verl's masked_whiten.
    """
    mean = masked_mean(values, mask, reduce=reduce)
    variance = masked_var(values, mask, reduce=reduce)
    white = (values - mean) * torch.rsqrt(variance + 1e-8)
    white = white if shift_mean else white + mean
    return torch.where(mask.bool(), white, white.new_zeros(()))
