from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.algos.shaping import Shaping, kl_reward, on_last_tokens, shape


def episode(reward, steps, by, *, stopped=True, unreadable=0, signals=None):
    readable = [number >= unreadable for number in range(steps)]
    return shape(
        reward, readable=readable, signals=signals or [0.0] * steps, stopped=stopped, by=by
    )


def test_without_coefficients_the_outcome_is_all():
    shaped = episode(1.0, 4, Shaping(), unreadable=2, signals=[0.5] * 4)
    assert shaped.total == 1
    assert shaped.steps == [0, 0, 0, 1]


def test_an_unreadable_reply_costs_where_it_stands():
    shaped = episode(1.0, 3, Shaping(unreadable_cost=0.25), unreadable=2)
    assert shaped.format == (-0.25, -0.25, 0)
    assert shaped.steps == [-0.25, -0.25, 1]
    assert shaped.total == 0.5


@pytest.mark.parametrize(("steps", "cost"), [(5, 0), (10, 0), (15, 0.25), (20, 0.5), (30, 0.5)])
def test_going_on_for_ever_costs_more_and_more(steps, cost):
    by = Shaping(long_cost=0.5, long_from=10, long_until=20)
    assert episode(1.0, steps, by).length == pytest.approx(-cost)


@pytest.mark.parametrize(
    ("reward", "steps", "stopped", "cost"),
    [(0.0, 1, True, 0.3), (0.0, 4, True, 0), (0.0, 9, True, 0), (1.0, 1, True, 0), (0.0, 1, False, 0)],
)  # fmt: skip
def test_giving_up_early_costs_only_who_failed_and_said_done(reward, steps, stopped, cost):
    by = Shaping(early_cost=0.4, early_until=4)
    assert episode(reward, steps, by, stopped=stopped).length == pytest.approx(-cost)


def test_outcomes_from_minus_1_to_1_and_signals_on_the_way():
    by = Shaping(signed=True, signal_weight=0.1)
    assert episode(0.0, 2, by).outcome == -1
    assert episode(0.5, 2, by).outcome == 0
    shaped = episode(1.0, 3, by, signals=[1, 0, 2])
    assert shaped.steps == pytest.approx([0.1, 0, 1.2])
    assert sum(shaped.steps) == pytest.approx(shaped.total)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"unreadable_cost": -1}, "unreadable_cost is below 0"),
        ({"long_cost": 1, "long_from": 5, "long_until": 5}, "long_from below long_until"),
        ({"early_cost": 1}, "early_until of 1 step"),
    ],
)
def test_a_wrong_coefficient_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        Shaping(**wrong)


def test_rewards_of_steps_lie_on_their_last_tokens():
    assert on_last_tokens([1, 2, 3], [2, 1, 3]).tolist() == [0, 1, 2, 0, 0, 3]
    assert on_last_tokens([1, 2, 3], [0, 2, 0]).tolist() == [1, 5]
    assert on_last_tokens([1], [0]).tolist() == []


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 4)), min_size=1))
def test_no_reward_of_a_step_is_lost(steps):
    rewards, lengths = zip(*steps, strict=True)
    placed = on_last_tokens(rewards, lengths)
    assert len(placed) == sum(lengths)
    assert float(placed.sum()) == pytest.approx(sum(rewards) if sum(lengths) else 0, abs=1e-3)


def test_kl_as_reward():
    logprobs = torch.tensor([[-1.0, -2.0, torch.nan]], requires_grad=True)
    reward = kl_reward(
        logprobs, torch.tensor([[-2.0, -1.0, 0.0]]), torch.tensor([[1, 1, 0]]), beta=0.1
    )
    assert reward.tolist() == [pytest.approx([-0.1, 0.1, 0])]
    assert not reward.requires_grad
