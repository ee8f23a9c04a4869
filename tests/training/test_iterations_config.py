"""What an iteration may be told, and when a candidate counts as better."""

# Fixtures come by import, and are named as parameters.
# ruff: noqa: F811

from __future__ import annotations

import pytest

from tests.training.iteration_parts import (  # noqa: F401
    CONFIG,
    begin,
    box,
    partner,
    place,
    toys,
    whole,
)
from training.errors import BadConfig
from training.evaluations import evaluations
from training.iterations import config
from training.iterations.decision import decide, fewest, one_sided
from training.iterations.phase import config_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("tasks", "toys/zz*", "has no task"),
        ("seeds", "many", "not a whole number"),
        ("level", 0.9, "not between"),
        ("start", "scratch", "not one of base, policy"),
        ("evaluation_seeds", "9", None),
        ("evaluation_seeds", "9:3", "no seed"),
        ("mix", "general x", "'x' is not a number"),
        ("mix", "general 0", "above 0"),
        ("changes", "sft.learning_rate: 5", "sft.learning_rate: 5 is not between"),
        ("changes", "sft.speed: 5", "sft has no value 'speed'"),
        ("changes", "dpo.beta: 5", "does not begin with one of ct, sft, value, ppo"),
        ("changes", "just words", "one value a line"),
        ("sft_every", 0, None),
        ("colour", "red", "no such field"),
    ],
)
def test_a_wrong_value_is_named(field, value, says):
    values = CONFIG | {field: value}
    if says is None:
        config.read(values)
        return
    with pytest.raises(BadConfig) as refused:
        config.read(values)
    assert list(refused.value.errors) == [field] and says in refused.value.errors[field]


def test_something_must_be_trained():
    with pytest.raises(BadConfig, match="nothing would ever be trained"):
        config.read(CONFIG | {"ct_every": 0, "sft_every": 0, "rl_every": 0})


def test_a_critic_needs_episodes():
    with pytest.raises(BadConfig, match="samples: 4 episodes are too few for the critic of RL"):
        config.read(CONFIG | {"rl_every": 1})
    assert config.read(CONFIG | {"rl_every": 1, "ppo_preset": "GRPO"})


def test_changed_values_reach_the_run(begin):
    row = begin(changes="sft:\n  learning_rate: 0.001\nct.epochs: 2\nppo.any_critic: yes")
    found = config_of(row)
    assert found.run_config("sft")["learning_rate"] == 0.001
    assert found.run_config("sft")["steps"] == 8, "the preset's"
    assert found.run_config("ct")["epochs"] == 2
    assert found.run_config("ppo")["any_critic"] == "yes"


def test_the_defaults_are_a_whole_configuration(monkeypatch):
    assert config.read({}).wanted[0][0] == "miniwob"


def test_the_one_sided_test_is_the_binomial_tail():
    assert one_sided(0, 4) == 1 / 16 and one_sided(1, 4) == 6 / 32
    assert one_sided(4, 0) == 1.0
    assert fewest(0.05) == 5 and one_sided(0, fewest(0.05)) < 0.05 <= one_sided(0, 4)


def test_too_few_changes_are_told_as_such(begin, box, partner):
    row = whole(begin(), before=5, after=5)
    assert row.decision["p"] == 1.0
    found = evaluations.beside(row.baseline, row.evaluation)
    assert not decide(found, level=0.05)["better"] and not decide(None, level=0.05)["better"]
