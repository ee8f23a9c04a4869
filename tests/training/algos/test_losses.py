"""Losses are sums: however a batch is cut, the parts add up to the whole."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.algos import policy
from training.algos.group import grpo, leave_one_out
from training.algos.masked import masked_mean, masked_var, masked_whiten
from training.algos.policy import (
    behaviour_weights,
    entropy,
    kl,
    mismatch_kl,
    policy_loss,
    positive_lm_loss,
    token_logprobs,
)
from training.algos.value import explained_variance, value_loss

F64 = torch.float64


def batch(seed, *shape):
    """Return new and old log-probabilities, advantages, values, returns and a mask."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(5, *shape, generator=generator, dtype=F64)
    new = -noise[0].abs()
    mask = torch.rand(shape, generator=generator) < 0.7
    return new, new + noise[1], noise[2], noise[3], noise[4], mask


@given(st.integers(0, 2**31), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_micro_batches_add_up(seed, size):
    new, old, advantages, values, returns, mask = batch(seed, 6, 11)
    positive = advantages[:, 0] > 0
    whole = policy_loss(new, old, advantages, mask)
    value, clipped = value_loss(values, returns + 0.1, returns, mask, clip=0.2)
    nll, tokens = positive_lm_loss(new, mask, positive)
    sums = torch.zeros(9, dtype=F64)
    for start in range(0, 6, size):
        cut = slice(start, start + size)
        part = policy_loss(new[cut], old[cut], advantages[cut], mask[cut])
        sums[:5] += torch.stack(
            [part.sum, part.clipped_high, part.clipped_low, part.dual_clipped, part.kl]
        )
        sums[5:7] += torch.stack(
            value_loss(values[cut], returns[cut] + 0.1, returns[cut], mask[cut], clip=0.2)
        )
        sums[7:] += torch.stack(positive_lm_loss(new[cut], mask[cut], positive[cut]))
    counted = [whole.sum, whole.clipped_high, whole.clipped_low, whole.dual_clipped, whole.kl]
    expected = torch.stack([*counted, value, clipped, nll, tokens]).double()
    torch.testing.assert_close(sums, expected, rtol=0, atol=1e-12)


def test_packed_tokens_equal_padded_rows():
    new, old, advantages, _, _, mask = batch(1, 4, 9)
    padded = policy_loss(new, old, advantages, mask)
    packed = policy_loss(new[mask], old[mask], advantages[mask], torch.ones(int(mask.sum())))
    torch.testing.assert_close(packed.sum, padded.sum, rtol=0, atol=1e-13)
    assert packed.clipped_high == padded.clipped_high


def test_nothing_outside_the_mask_reaches_loss_or_gradient():
    new, old, advantages, _, _, mask = batch(2, 3, 8)
    new = torch.where(mask, new, -1e4).requires_grad_()
    loss = policy_loss(new, torch.where(mask, old, torch.nan), advantages, mask)
    loss.sum.backward()
    clean = policy_loss(new.detach(), torch.where(mask, old, 0), advantages, mask)
    assert torch.isfinite(loss.sum)
    assert loss.sum == clean.sum
    assert not torch.nan_to_num(new.grad)[~mask].any()


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "counted"),
    [
        (1.1, 1.0, -1.1, None),
        (1.5, 1.0, -1.28, "clipped_high"),
        (0.5, 1.0, -0.5, None),
        (0.5, -1.0, 0.8, "clipped_low"),
        (1.5, -1.0, 1.5, None),
        (9.0, -1.0, 3.0, "dual_clipped"),
        (1e30, -1.0, 3.0, "dual_clipped"),
        (1e-30, 2.0, -2 * math.exp(-20), None),
    ],
)
def test_what_each_token_costs(ratio, advantage, loss, counted):
    new = torch.tensor([math.log(ratio)], dtype=F64)
    found = policy_loss(
        new, torch.zeros(1, dtype=F64), torch.tensor([advantage]).double(), torch.ones(1)
    )
    assert float(found.sum) == pytest.approx(loss, abs=1e-12)
    counts = {
        name: int(getattr(found, name)) for name in ("clipped_high", "clipped_low", "dual_clipped")
    }
    assert counts == {name: int(name == counted) for name in counts}


def test_without_dual_clip_one_token_can_rule_a_batch():
    new = torch.tensor([math.log(50.0)], dtype=F64)
    zero, bad = torch.zeros(1, dtype=F64), -torch.ones(1, dtype=F64)
    assert float(policy_loss(new, zero, bad, torch.ones(1), dual_clip=None).sum) == (
        pytest.approx(50)
    )
    with pytest.raises(ValueError, match="dual_clip is 1"):
        policy_loss(new, zero, bad, torch.ones(1), dual_clip=1.0)


def test_on_policy_the_correction_is_none():
    new, old, advantages, _, _, mask = batch(3, 4, 9)
    for mode in ("truncate", "mask"):
        weights = behaviour_weights(old, old, mode=mode)
        assert torch.equal(weights, torch.ones_like(old))
        corrected = policy_loss(new, old, advantages, mask, weights=weights)
        assert corrected.sum == policy_loss(new, old, advantages, mask).sum


def test_a_stale_token_is_held_at_the_cap_or_left_out():
    prox, behave = torch.tensor([0.0, 0.0, 0.0]), torch.log(torch.tensor([1.0, 0.25, 2.0]))
    truncated = behaviour_weights(prox, behave, cap=2.0)
    assert truncated.tolist() == pytest.approx([1, 2, 0.5])
    assert behaviour_weights(prox, behave, cap=2.0, mode="mask").tolist() == pytest.approx(
        [1, 0, 0.5]
    )
    assert not behaviour_weights(prox.requires_grad_(), behave).requires_grad


def test_the_positive_loss_is_divided_by_the_tokens_of_successes():
    logprobs = torch.tensor([[-1.0, -2.0, -9.0], [-4.0, -4.0, -4.0]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    total, tokens = positive_lm_loss(logprobs, mask, torch.tensor([1, 0]))
    assert (float(total), int(tokens)) == (3.0, 2)  # not 5, the tokens of the batch
    total, tokens = positive_lm_loss(logprobs, mask, torch.tensor([0, 0]))
    assert (float(total), int(tokens)) == (0.0, 0)


def test_kl_estimates():
    generator = torch.Generator().manual_seed(5)
    logits, other = torch.randn(2, 50, generator=generator, dtype=F64)
    p, q = logits.log_softmax(-1), other.log_softmax(-1)
    exact = (p.exp() * (p - q)).sum()
    for kind in ("k1", "k3"):
        assert float((p.exp() * kl(p, q, kind=kind)).sum()) == pytest.approx(float(exact))
    assert (kl(p, q, kind="k3") >= 0).all()
    assert mismatch_kl(p, p, torch.ones(50)) == 0
    assert mismatch_kl(p, q, torch.ones(50)) == pytest.approx(float(((p - q) ** 2).sum() / 2))


@pytest.mark.parametrize("piece", [1, 64, 1 << 24])
def test_pieces_of_logits_give_the_whole(piece, monkeypatch):
    monkeypatch.setattr(policy, "PIECE", piece)
    generator = torch.Generator().manual_seed(6)
    logits = (5 * torch.randn(3, 4, 17, generator=generator, dtype=F64)).requires_grad_()
    ids = torch.randint(17, (3, 4), generator=generator)
    assert torch.autograd.gradcheck(lambda given: token_logprobs(given, ids), logits)
    expected = logits.log_softmax(-1)
    torch.testing.assert_close(
        token_logprobs(logits, ids), expected.gather(-1, ids[..., None])[..., 0]
    )
    torch.testing.assert_close(entropy(logits), -(expected.exp() * expected).sum(-1))


def test_half_precision_logits_are_summed_in_fp32():
    generator = torch.Generator().manual_seed(7)
    logits = torch.randn(2, 3, 300, generator=generator).bfloat16().requires_grad_()
    ids = torch.randint(300, (2, 3), generator=generator)
    found = token_logprobs(logits, ids)
    exact = logits.detach().double().log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-5)
    found.sum().backward()
    assert logits.grad.dtype == torch.bfloat16
    assert entropy(logits).dtype == torch.float32


def test_a_ruled_out_token_has_no_part_in_the_entropy():
    logits = torch.tensor([[0.0, 0.0, -torch.inf]])
    assert float(entropy(logits)) == pytest.approx(math.log(2))


def test_no_logits_at_all():
    logits = torch.zeros(0, 3, 4)
    assert entropy(logits).shape == (0, 3)
    assert token_logprobs(logits, torch.zeros(0, 3, dtype=torch.long)).shape == (0, 3)


def test_explained_variance_of_a_predictable_game_goes_to_1():
    """The return is the state's number; a critic of one weight learns it."""
    states = torch.arange(12, dtype=F64).view(3, 4)
    mask = torch.ones(3, 4)
    weight = torch.zeros((), dtype=F64, requires_grad=True)
    seen = []
    for _ in range(60):
        values = weight * states
        seen.append(explained_variance(values.detach(), states, mask))
        loss, _ = value_loss(values, values.detach(), states, mask, clip=None)
        (slope,) = torch.autograd.grad(loss / 12, weight)
        weight = (weight - 0.01 * slope).detach().requires_grad_()
    assert seen[0] == 0
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1, abs=1e-9)


def test_explained_variance_at_its_edges():
    returns = torch.tensor([[0.1, 0.1, 0.1, 5.0]], dtype=F64)
    mask = torch.tensor([[1, 1, 1, 0]])
    assert explained_variance(returns, returns, mask) == 0  # nothing to explain passes no gate
    assert explained_variance(returns, returns, mask * 0) == 0
    returns = torch.tensor([[0.0, 1.0, 2.0, torch.nan]], dtype=F64)
    assert explained_variance(returns + 3, returns, mask) == 1
    assert explained_variance(-returns, returns, mask) == -3
    assert explained_variance(returns * torch.nan, returns, mask) == 0


def test_whitened_numbers():
    numbers = torch.tensor([[1.0, 2.0, 3.0, torch.nan]], dtype=F64)
    mask = torch.tensor([[1, 1, 1, 0]])
    assert float(masked_mean(numbers, mask)) == 2
    assert float(masked_var(numbers, mask)) == 1
    assert masked_whiten(numbers, mask).tolist() == [pytest.approx([-1, 0, 1, 0])]
    assert masked_whiten(numbers, mask * 0).tolist() == [[0, 0, 0, 0]]
    assert masked_var(numbers[:, :1], mask[:, :1]) == 0


def test_bf16_is_counted_in_fp32():
    numbers = torch.full((1000,), 3.0, dtype=torch.bfloat16)
    assert float(masked_mean(numbers, torch.ones(1000))) == 3
    error, _ = value_loss(numbers, numbers, numbers + 2, torch.ones(1000), clip=None)
    assert float(error) == 2000


def test_a_group_of_one_teaches_nothing():
    rewards = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=F64)
    groups = ["a", "a", "a", "b"]
    assert leave_one_out(rewards, groups).tolist() == pytest.approx([0.5, -1, 0.5, 0])
    assert grpo(rewards, groups, by_std=False).tolist() == pytest.approx([1 / 3, -2 / 3, 1 / 3, 0])
    assert not grpo(torch.ones(3), ["a"] * 3).any()
