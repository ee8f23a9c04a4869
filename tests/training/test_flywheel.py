"""V(s): every way in which a session may end up in a pool, or in none."""

import pytest

from training.data.flywheel import NOT_ENDED, route


@pytest.mark.parametrize(
    ("reward", "verdict", "status", "pool", "disputed"),
    [
        (1.0, "accepted", "accepted", "sft", False),
        (1.5, "corrected", "accepted", "sft", False),
        (0.0, "rejected", "rejected", "ct", False),
        (None, "accepted", "accepted", "sft", False),
        (None, "corrected", "accepted", "sft", False),
        (None, "rejected", "rejected", "ct", False),
        # The verifier is asked before the reviewer.
        (0.0, "accepted", "accepted", "ct", True),
        (1.0, "rejected", "rejected", "sft", True),
        # Partial credit is not a demonstration.
        (0.99, "accepted", "accepted", "ct", True),
        (-1.0, "rejected", "rejected", "ct", False),
    ],
)
def test_a_reviewed_session_goes_to_one_pool(reward, verdict, status, pool, disputed):
    result = route(status=status, outcome="finished", reward=reward, verdict=verdict)
    assert result.pool == pool
    assert result.value == (1 if pool == "sft" else 0)
    assert result.disputed is disputed
    assert result.reason


@pytest.mark.parametrize("status", sorted(NOT_ENDED))
def test_a_session_that_is_not_settled_teaches_nothing_whatever_its_reward(status):
    result = route(status=status, outcome="finished", reward=1.0, verdict="accepted")
    assert result.pool is None
    assert result.reason == NOT_ENDED[status]


@pytest.mark.parametrize(
    ("status", "outcome"), [("failed", ""), ("accepted", "env_failure"), ("failed", "env_failure")]
)
def test_a_broken_environment_is_never_a_zero(status, outcome):
    result = route(status=status, outcome=outcome, reward=0.0, verdict="rejected")
    assert result.value is None
    assert "environment" in result.reason


def test_an_unreviewed_session_has_no_value():
    result = route(status="accepted", outcome="finished", reward=1.0, verdict="")
    assert result.pool is None
    assert "reviewed" in result.reason


def test_an_unknown_status_is_named_instead_of_guessed():
    assert "'archived'" in route(status="archived", outcome="", reward=1, verdict="accepted").reason
