"""What a language model learns text by, without the logits of a whole batch at once.

The logits are the largest tensor of a step: a vocabulary of 150,000 over 8,000 tokens is 4.8 GB in
fp32, and its gradient as much again. Here they exist for a piece of the tokens, and no longer than it
takes to make the gradients of the hidden states and of the head from them (the method of Liger's fused
linear cross-entropy, arXiv 2410.10989, section 3.2; that one divides by the token count, this is a sum).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

PIECE = 1 << 23
"""Logits of a piece: 32 MB in fp32."""


class _SummedNll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        exact = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        total = torch.zeros((), dtype=exact, device=hidden.device)
        d_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        d_head = torch.zeros_like(head, dtype=exact) if ctx.needs_input_grad[1] else None
        size = max(1, PIECE // head.shape[0])
        for start in range(0, len(hidden), size):
            part = slice(start, start + size)
            logits = (hidden[part] @ head.t()).to(exact)
            at = ids[part, None]
            norms = logits.logsumexp(-1, keepdim=True)
            total += ((norms - logits.gather(1, at))[:, 0] * weights[part]).sum()
            if d_hidden is None and d_head is None:
                continue
            # The gradient of the logits: weight times (softmax - one at the target).
            logits.sub_(norms).exp_()
            logits.scatter_add_(1, at, torch.full_like(norms, -1.0))
            grad = logits.mul_(weights[part, None]).to(hidden.dtype)
            if d_hidden is not None:
                torch.mm(grad, head, out=d_hidden[part])
            if d_head is not None:
                if d_head.dtype == grad.dtype:
                    d_head.addmm_(grad.t(), hidden[part])
                else:
                    d_head += grad.t() @ hidden[part]
        ctx.d_hidden, ctx.d_head, ctx.kind = d_hidden, d_head, head.dtype
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        (grad,) = grads
        d_hidden = None if ctx.d_hidden is None else ctx.d_hidden * grad.to(ctx.d_hidden.dtype)
        d_head = None if ctx.d_head is None else (ctx.d_head.mul_(grad)).to(ctx.kind)
        ctx.d_hidden = ctx.d_head = None
        return d_hidden, d_head, None, None


def summed_nll(hidden: Tensor, head: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
    """Return sum_k weights[k] * -log softmax(hidden[k] @ head.T)[ids[k]], a scalar in fp32 (or fp64).

    hidden (k, h) and head (v, h) of one dtype, ids (k,), weights (k,). Has gradients for hidden and
    head, once: they are made in the forward pass.
    """
    found: Tensor = _SummedNll.apply(hidden, head, ids, weights)
    return found
