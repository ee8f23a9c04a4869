"""What the policy learns by: sums over tokens, so that a batch may be cut anywhere.

Every loss returns a sum over the mask; the caller divides by the token count of the whole batch
over all processes. All tensors of a call have the same shape, (n, t) or (t,), in nats.

Logits are the largest tensor of a step: 8,000 tokens over a vocabulary of 150,000 are 2.4 GB in bf16.
An fp32 copy would be 4.8 GB more, and autograd would keep it; here a piece at a time is in fp32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from training.algos.masked import masked_sum

# exp(20) is 5e8: a further ratio says nothing more and overflows in half precision.
LOG_RATIO_LIMIT = 20.0
# Numbers of a piece of logits: 64 MB in fp32.
PIECE = 1 << 24


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """Sums over the mask, each a scalar tensor; only `sum` has a gradient."""

    sum: Tensor
    clipped_high: Tensor
    """Tokens with A > 0 whose ratio is above 1 + clip_high: no gradient."""
    clipped_low: Tensor
    """Tokens with A < 0 whose ratio is below 1 - clip_low: no gradient."""
    dual_clipped: Tensor
    """Tokens with A < 0 whose ratio is above dual_clip: no gradient."""
    kl: Tensor
    """Sum of log old - log new, an estimate of KL(old || new)."""


def log_ratio(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    """Return log(new / old), held within 20 either way."""
    return (logprobs - old_logprobs).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float | None = 3.0,
    weights: Tensor | None = None,
) -> PolicyLoss:
    """Return the sum of -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A) and what was clipped.

    The token-level loss with clip-higher of VAPO (arXiv 2504.05118) and DAPO (arXiv 2503.14476,
    sections 3.1 and 3.3). Where A < 0 the loss is at most -dual_clip A (arXiv 1912.09729), so
    that one token with a huge ratio can't rule a batch. `weights` multiply each token's loss: the
    behaviour weights of a stale sample. Same as verl's compute_policy_loss_vanilla.
    """
    if dual_clip is not None and dual_clip <= 1:
        raise ValueError(f"dual_clip is {dual_clip:g}: it must be above 1")
    log_rho = log_ratio(logprobs, old_logprobs)
    rho = log_rho.exp()
    free = -advantages * rho
    held = -advantages * rho.clamp(1 - clip_low, 1 + clip_high)
    loss = torch.maximum(free, held)
    bad, inside = advantages < 0, mask.bool()
    clipped = (held > free) & inside
    dual = torch.zeros_like(clipped)
    if dual_clip is not None:
        limit = -advantages * dual_clip
        dual = bad & (loss > limit) & inside
        loss = torch.where(bad, torch.minimum(loss, limit), loss)
    if weights is not None:
        loss = loss * weights
    return PolicyLoss(
        sum=masked_sum(loss, mask),
        clipped_high=(clipped & ~bad).sum(),
        clipped_low=(clipped & bad).sum(),
        dual_clipped=dual.sum(),
        kl=masked_sum(-log_rho.detach(), mask),
    )


@torch.no_grad()
def behaviour_weights(
    prox_logprobs: Tensor,
    behave_logprobs: Tensor,
    *,
    cap: float = 2.0,
    mode: Literal["truncate", "mask"] = "truncate",
) -> Tensor:
    """Return pi_prox / pi_behave per token, without gradient: what corrects stale samples.

    pi_prox is the policy at the start of the update, as the trainer computes it; pi_behave what the
    sampler recorded. "mask" gives tokens above `cap` no loss at all (AReaL's decoupled PPO, arXiv
    2505.24298, section 5.2); "truncate" gives them `cap` (truncated importance sampling). 1 everywhere
    where the two agree.
    """
    ratio = log_ratio(prox_logprobs, behave_logprobs).exp()
    if mode == "mask":
        return torch.where(ratio <= cap, ratio, ratio.new_zeros(()))
    return ratio.clamp(max=cap)


def positive_lm_loss(logprobs: Tensor, mask: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """Return (sum of -log pi over the tokens of positive trajectories, how many tokens those are).

    VAPO eq. 9-10, `positive` (n,) says which rows succeeded. The normaliser is the second number
    summed over the whole batch, not the batch's tokens: else mu would shrink with the success rate.
    """
    chosen = mask.bool() & positive.bool()[:, None]
    return -masked_sum(logprobs, chosen), chosen.sum()


def kl(logprobs: Tensor, reference: Tensor, *, kind: Literal["k1", "k2", "k3"] = "k1") -> Tensor:
    """Return an estimate of KL(pi || pi_ref) per token, sampled from pi.

    k1 log pi - log ref, unbiased; k2 half its square; k3 ref/pi - 1 - log(ref/pi), unbiased and
    never negative (J. Schulman, Approximating KL divergence, 2020).
    """
    if kind == "k1":
        return logprobs - reference
    if kind == "k2":
        return 0.5 * (logprobs - reference) ** 2
    back = log_ratio(reference, logprobs)
    return back.exp() - 1 - back


@torch.no_grad()
def mismatch_kl(trainer: Tensor, sampler: Tensor, mask: Tensor) -> Tensor:
    """Return the sum over the mask of half the squared log-ratio of trainer and sampler.

    Both are log-probabilities of the same tokens by the same weights; what is not 0 is the two
    programs' difference. A rise is the early warning of a collapse.
    """
    return masked_sum(kl(trainer, sampler, kind="k2"), mask)


def _pieces(flat: Tensor) -> Iterator[slice]:
    rows = max(1, PIECE // flat.shape[1])
    for start in range(0, len(flat), rows):
        yield slice(start, start + rows)


def _precise(piece: Tensor) -> Tensor:
    return piece if piece.dtype == torch.float64 else piece.float()


class _TokenLogprobs(torch.autograd.Function):
    """log softmax(logits)[ids] that keeps one number per token for its gradient."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, ids: Tensor) -> Tensor:
        norms = torch.cat([_precise(flat[rows]).logsumexp(-1) for rows in _pieces(flat)])
        ctx.save_for_backward(flat, ids, norms)
        return _precise(flat.gather(1, ids[:, None])[:, 0]) - norms

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        flat, ids, norms = ctx.saved_tensors
        (grad,) = grads
        out = torch.empty_like(flat)
        for rows in _pieces(flat):
            piece = (_precise(flat[rows]) - norms[rows, None]).exp_()
            piece.mul_(-grad[rows, None])
            piece.scatter_add_(1, ids[rows, None], grad[rows, None])
            out[rows] = piece
        return out, None


def token_logprobs(logits: Tensor, ids: Tensor) -> Tensor:
    """Return log softmax(logits)[ids] for logits (..., v) and ids (...), in fp32 (fp64 for fp64)."""
    if not ids.numel():
        return _precise(logits.new_zeros(ids.shape))
    flat: Tensor = logits.reshape(-1, logits.shape[-1])
    found: Tensor = _TokenLogprobs.apply(flat, ids.reshape(-1))
    return found.view(ids.shape)


@torch.no_grad()
def entropy(logits: Tensor) -> Tensor:
    """Return the entropy (...) in nats of softmax(logits) (..., v), in fp32 or better, for the log.

    It has no gradient: the recipe has no entropy bonus.
    """
    flat = logits.reshape(-1, logits.shape[-1])
    parts = [torch.special.entr(_precise(flat[rows]).softmax(-1)).sum(-1) for rows in _pieces(flat)]
    return torch.cat(parts).view(logits.shape[:-1]) if parts else _precise(logits[..., 0])
