"""The quick pass of a LoRA layer gives peft's numbers and gradients, and gets out of the way."""

from __future__ import annotations

import copy

import torch

from agent.serving.checkpoint import load
from training.trainers.lora import hasten

pytest_plugins = ["tests.tiny"]


def test_it_equals_peft_and_the_adapter_can_be_switched_off(tiny_lora):
    plain = load(tiny_lora, trainable=True).model.double()
    quick = copy.deepcopy(plain)
    assert hasten(quick) == 14
    ids = torch.arange(12)[None] + 40
    grads = []
    for model in (plain, quick):
        model(ids).logits.square().mean().backward()
        grads.append([p.grad for p in model.parameters() if p.requires_grad])
    assert torch.allclose(plain(ids).logits, quick(ids).logits, rtol=1e-10, atol=1e-10)
    for a, b in zip(*grads, strict=True):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-12)
    with torch.no_grad(), plain.disable_adapter(), quick.disable_adapter():
        assert torch.equal(plain(ids).logits, quick(ids).logits)
