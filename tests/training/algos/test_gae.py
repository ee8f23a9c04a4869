"""Advantages depend on what the policy wrote, and on nothing else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.algos.gae import (
    decoupled_gae,
    gae,
    half_life,
    join,
    length_adaptive_lambda,
    monte_carlo_returns,
    reaches_first,
    split,
    terminal,
)

F64 = torch.float64


def walked(rewards, values, mask, gamma, lam):
    """Return GAE as the textbook writes it: token by token, from the end."""
    advantages = torch.zeros_like(values)
    for row in range(len(values)):
        following = last = 0.0
        for t in reversed(range(values.shape[1])):
            if mask[row, t]:
                delta = rewards[row, t] + gamma * following - values[row, t]
                last = delta + gamma * lam[row] * last
                following = values[row, t]
                advantages[row, t] = last
    return advantages


@st.composite
def batches(draw):
    rows, width = draw(st.integers(1, 4)), draw(st.integers(1, 40))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    mask = torch.rand(rows, width, generator=generator) < draw(st.floats(0, 1))
    rewards, values = torch.randn(2, rows, width, generator=generator, dtype=F64)
    lam = torch.rand(rows, generator=generator, dtype=F64)
    return rewards, values, mask, lam


@given(batches(), st.sampled_from([1.0, 0.9]))
@settings(max_examples=60, deadline=None)
def test_whole_rows_at_once_equal_the_walk_from_the_end(batch, gamma):
    rewards, values, mask, lam = batch
    ours = gae(rewards, values, mask, gamma=gamma, lam=lam)
    torch.testing.assert_close(ours, walked(rewards, values, mask, gamma, lam), rtol=0, atol=1e-12)


@given(batches())
@settings(max_examples=30, deadline=None)
def test_what_stands_outside_the_mask_changes_nothing(batch):
    rewards, values, mask, lam = batch
    noise = torch.where(mask, values, torch.nan)
    paid = torch.where(mask, rewards, 1e6)
    for ours, clean in zip(
        decoupled_gae(paid, noise, mask, lam_policy=lam),
        decoupled_gae(rewards, values, mask, lam_policy=lam),
        strict=True,
    ):
        assert torch.equal(ours, clean)
        assert not ours[~mask].any()


@given(batches(), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_padding_on_either_side_changes_nothing(batch, left, right):
    rewards, values, mask, lam = batch
    pad = torch.nn.functional.pad
    wide = gae(
        pad(rewards, (left, right)), pad(values, (left, right), value=7.0),
        pad(mask, (left, right)), lam=lam,
    )  # fmt: skip
    assert torch.equal(wide, pad(gae(rewards, values, mask, lam=lam), (left, right)))


@given(batches())
@settings(max_examples=30, deadline=None)
def test_lambda_critic_1_is_the_monte_carlo_return(batch):
    rewards, values, mask, lam = batch
    _, returns = decoupled_gae(rewards, values, mask, gamma=0.9, lam_policy=lam, lam_critic=1.0)
    expected = monte_carlo_returns(rewards, mask, gamma=0.9)
    torch.testing.assert_close(returns, expected, rtol=0, atol=1e-12)


def test_a_row_alone_equals_the_row_in_a_batch():
    generator = torch.Generator().manual_seed(3)
    rewards, values = torch.randn(2, 6, 33, generator=generator, dtype=F64)
    mask = torch.rand(6, 33, generator=generator) < 0.6
    together = gae(rewards, values, mask, lam=0.9)
    for row in range(6):
        one = slice(row, row + 1)
        alone = gae(rewards[one], values[one], mask[one], lam=0.9)
        torch.testing.assert_close(together[one], alone, rtol=0, atol=1e-14)


def test_the_steps_of_an_episode_joined_equal_the_walk_over_the_steps():
    """The next state of a step's last token is the first token of the next step."""
    generator = torch.Generator().manual_seed(4)
    steps = [torch.randn(n, generator=generator, dtype=F64) for n in (3, 1, 0, 5, 2)]
    reward, gamma, lam = 0.7, 0.95, 0.8
    expected, following, last = [], 0.0, 0.0
    for number, values in reversed(list(enumerate(steps))):
        found = torch.zeros_like(values)
        for t in reversed(range(len(values))):
            ends = number == len(steps) - 1 and t == len(values) - 1
            last = (reward if ends else 0) + gamma * following - values[t] + gamma * lam * last
            found[t], following = last, values[t]
        expected.insert(0, found)
    values = join(steps)[None]
    mask = torch.ones_like(values)
    rewards = terminal(torch.tensor([reward], dtype=F64), mask)
    ours = split(gae(rewards, values, mask, gamma=gamma, lam=lam)[0], steps)
    assert [len(step) for step in ours] == [3, 1, 0, 5, 2]
    for mine, theirs in zip(ours, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-13)


def test_two_turns_with_a_screen_between_them():
    """R = 1, V = .5, lambda .95: skipping the screen's tokens keeps .429 and .451.

    A GAE that walks through them gives .261 and .275, 39 % less, for a screen of four tokens.
    """
    mask = torch.tensor([[1, 1, 0, 0, 0, 0, 1, 1]])
    rewards = terminal(torch.ones(1, dtype=F64), mask)
    for at_screen in (0.0, 0.5, 5.0):
        values = torch.where(mask.bool(), 0.5, at_screen).double()
        first = gae(rewards, values, mask, lam=0.95)[0, :2]
        assert [round(float(number), 3) for number in first] == [0.429, 0.451]
    through = gae(rewards, 0.5 * mask.double(), torch.ones_like(mask), lam=0.95)[0, :2]
    assert [round(float(number), 3) for number in through] == [0.261, 0.275]


def test_lambda_grows_with_the_length_and_never_falls_below_0():
    lengths = torch.tensor([0, 1, 19, 20, 50, 100, 500, 1000, 10_000])
    found = length_adaptive_lambda(lengths, alpha=0.05)
    assert found.tolist() == pytest.approx([0, 0, 0, 0, 0.6, 0.8, 0.96, 0.98, 0.998], abs=1e-12)
    with pytest.raises(ValueError, match="alpha is 0"):
        length_adaptive_lambda(lengths, alpha=0)


@pytest.mark.parametrize(
    ("alpha", "half_lives", "share"),
    [(0.05, (6.6, 52, 173), 2e-9), (0.4, (55, 416, 1386), 0.082), (1.5, (208, 1558, 5198), 0.51)],
)
def test_how_far_a_terminal_reward_reaches(alpha, half_lives, share):
    lengths = torch.tensor([200, 1500, 5000])
    lam = length_adaptive_lambda(lengths, alpha=alpha)
    assert half_life(lam).tolist() == pytest.approx(half_lives, rel=0.01)
    assert float(reaches_first(lam, lengths)[2]) == pytest.approx(share, rel=0.05)


def test_a_reward_reaches_the_first_token_as_far_as_it_is_said():
    length, lam = 40, 0.9
    mask = torch.ones(1, length)
    reward = terminal(torch.ones(1, dtype=F64), mask)
    seen = gae(reward, torch.zeros(1, length, dtype=F64), mask, lam=lam)[0, 0]
    assert float(seen) == pytest.approx(float(reaches_first(lam, torch.tensor(length))), abs=1e-15)
    assert half_life(0.0) == 0
    assert half_life(1.0) == torch.inf


def test_a_terminal_reward_lies_on_the_last_policy_token():
    mask = torch.tensor([[0, 1, 1, 0, 0], [1, 0, 1, 1, 1], [0, 0, 0, 0, 0]])
    placed = terminal(torch.tensor([2.0, 3.0, 4.0]), mask)
    assert placed.tolist() == [[0, 0, 2, 0, 0], [0, 0, 0, 0, 3], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("shape", [(0, 5), (2, 0), (2, 5)])
def test_nothing_to_learn_from_is_no_error(shape):
    empty = torch.zeros(shape)
    advantages, returns = decoupled_gae(empty, empty, empty, lam_policy=0.95)
    assert advantages.shape == returns.shape == shape
    assert not advantages.any()
