"""Seeds as people type them: what is far too many is refused at once, not counted through."""

from __future__ import annotations

import pytest

from training.errors import BadConfig
from training.evaluations import suites
from training.rollouts import choosing


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0:1000000000000", "are more than 100000 seeds"),
        ("0:9223372036854775808", "are more than 100000 seeds"),
        (f"0:{10**30}", "has no seed"),
        (str(2**63), "has no seed"),
        ("-1:3", "has no seed"),
        ("3:3", "has no seed"),
        ("x", "are no seeds"),
    ],
)
def test_seeds_of_an_evaluation_that_are_refused(text, says):
    with pytest.raises(ValueError, match=says):
        suites.seeds(text)


def test_seeds_of_an_evaluation():
    assert suites.seeds(" 5:7 ") == range(5, 7)
    assert suites.seeds(str(2**63 - 1)) == range(2**63 - 1, 2**63)
    assert len(suites.seeds("0:100000")) == 100_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0:99999999999999999999", "more than 100000 seeds"),
        (f"0:{10**30}", "neither a number"),
        ("0:60000, 100000:160000", "more than 100000 seeds"),
        ("1²", "neither a number"),
        ("5:5", "at least one"),
    ],
)
def test_seeds_of_a_rollout_that_are_refused(text, says):
    with pytest.raises(BadConfig, match=says):
        choosing.seeds_of(text)


def test_seeds_of_a_rollout():
    assert choosing.seeds_of("1, 5 20:23 7:3") == [1, 5, 20, 21, 22]
