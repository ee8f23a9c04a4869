"""The summed cross-entropy without logits equals torch's with them, gradients too."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from training.algos import nll


@pytest.mark.parametrize("piece", [1, 40, 1 << 20])
@pytest.mark.parametrize("trained", [True, False])
def test_it_equals_torchs_cross_entropy_however_it_is_cut(piece, trained, monkeypatch):
    monkeypatch.setattr(nll, "PIECE", piece)
    random = torch.Generator().manual_seed(0)
    hidden = torch.randn(9, 6, generator=random, dtype=torch.float64).requires_grad_()
    head = torch.randn(13, 6, generator=random, dtype=torch.float64).requires_grad_(trained)
    ids = torch.randint(13, (9,), generator=random)
    weights = torch.randn(9, generator=random, dtype=torch.float64)
    wanted = [hidden, head] if trained else [hidden]

    plain = (F.cross_entropy(hidden @ head.t(), ids, reduction="none") * weights).sum()
    ours = nll.summed_nll(hidden, head, ids, weights)
    assert torch.allclose(ours, plain, rtol=1e-12, atol=1e-12)
    expected = torch.autograd.grad(3 * plain, wanted)
    found = torch.autograd.grad(3 * ours, wanted)
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_no_token_is_no_loss():
    hidden = torch.zeros(0, 4, requires_grad=True)
    loss = nll.summed_nll(
        hidden, torch.ones(5, 4), torch.zeros(0, dtype=torch.long), torch.zeros(0)
    )
    loss.backward()
    assert (loss.item(), hidden.grad.shape) == (0.0, (0, 4))
