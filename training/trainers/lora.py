"""The forward and backward pass of a LoRA layer in as few passes over its tokens as it takes.

peft adds B(A(x)) * scale to W x as tensors of their own, and scales and adds their gradients again: five
passes over the widest tensors of a layer. Here each sum goes into the product that makes it. The same
numbers but for rounding: y = W x + b + s B A x (LoRA, arXiv 2106.09685, section 4.1).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class _Lora(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, a: Tensor, b: Tensor, scale: float
    ) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        low = flat @ a.t()
        out = F.linear(flat, weight, bias).addmm_(low, b.t(), alpha=scale)
        ctx.save_for_backward(flat, weight, a, b, low)
        ctx.scale = scale
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        flat, weight, a, b, low = ctx.saved_tensors
        grad = grads[0].reshape(-1, grads[0].shape[-1])
        through = (grad @ b).mul_(ctx.scale)
        d_a = through.t() @ flat
        d_b = (grad.t() @ low).mul_(ctx.scale)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = (grad @ weight).addmm_(through, a).view(*grads[0].shape[:-1], -1)
        return d_x, None, None, d_a, d_b, None


def _forward(layer: Any, name: str, x: Tensor) -> Tensor:
    base = layer.base_layer
    a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
    if layer.disable_adapters or layer.merged or not x.dtype == base.weight.dtype == a.dtype:
        plain: Tensor = type(layer).forward(layer, x)
        return plain
    found: Tensor = _Lora.apply(x, base.weight, base.bias, a, b, layer.scaling[name])
    return found


def hasten(model: Any) -> int:
    """Give every plain LoRA layer of a peft model that pass; returns how many there are.

    Layers with dropout, several adapters, or weights of several dtypes keep peft's.
    """
    from peft.tuners.lora import Linear

    count = 0
    for layer in model.modules():
        if not isinstance(layer, Linear) or len(layer.active_adapters) != 1 or layer.merged:
            continue
        name = layer.active_adapters[0]
        plain = isinstance(layer.lora_dropout[name], torch.nn.Identity) and not layer.use_dora[name]
        trained = (
            layer.lora_A[name].weight.requires_grad and not layer.base_layer.weight.requires_grad
        )
        if plain and trained and type(layer.base_layer) is torch.nn.Linear:
            object.__setattr__(layer, "forward", partial(_forward, layer, name))
            count += 1
    return count
