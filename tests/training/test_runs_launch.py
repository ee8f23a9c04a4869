"""Launching runs of every kind: names, fields that are wrong, what does not fit."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.training.played import (  # noqa: F401  (fixtures)
    base,
    critic,
    dataset,
    every_kind,
    played,
    policy,
)
from training.errors import BadConfig, NameTaken
from training.models import Dataset, Rollout, Run
from training.presets import presets_of, read_config
from training.runs import runs

# ruff: noqa: F811
pytestmark = pytest.mark.django_db

TASKS = [("miniwob", "click-test"), ("miniwob", "click-button")]


def launch(kind, config=None, **given):
    return runs.launch(kind=kind, config=config or {}, by=None, **given)


def refused(kind, config=None, **given):
    """Return what is wrong by field; nothing may have been made."""
    before = Run.objects.count(), Rollout.objects.count()
    with pytest.raises(BadConfig) as caught:
        launch(kind, config, **given)
    assert (Run.objects.count(), Rollout.objects.count()) == before
    return caught.value.errors


def general(name="chat", pool="general"):
    return Dataset.objects.create(name=name, pool=pool, sha256="0" * 64, uri="x", trajectories=1)


def test_a_launch_is_queued_under_the_next_free_name(
    dataset, base, every_kind, admin_user, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        one = runs.launch(kind="sft", dataset=dataset, base=base, config={}, by=admin_user)
        two = launch("sft", dataset=dataset, base=base)
    assert (one.name, two.name) == ("sft-clicks-1", "sft-clicks-2")
    assert one.config == presets_of("sft")["standard"]
    assert every_kind == [one.pk, two.pk]
    with pytest.raises(NameTaken, match="sft-clicks-1"):
        launch("sft", dataset=dataset, base=base, name=one.name)


@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        ({"learning_rate": "fast"}, "learning_rate", "'fast' is not a number"),
        ({"learning_rate": "nan"}, "learning_rate", "nan is not between 0 and 1"),
        ({"learning_rate": 0}, "learning_rate", "changes nothing"),
        ({"batch_size": "2.5"}, "batch_size", "not a whole number"),
        ({"batch_size": 0}, "batch_size", "not between 1 and 4096"),
        ({"dtype": "float8"}, "dtype", "not one of float32, bfloat16"),
        ({"epochs": 0, "steps": 0}, "steps", "both are 0"),
        ({"stpes": 3}, "stpes", "no such field"),
    ],
)
def test_every_bad_value_is_named_by_its_field(values, field, says):
    with pytest.raises(BadConfig) as caught:
        read_config("sft", values)
    assert says in caught.value.errors[field]


def test_all_that_is_wrong_is_said_at_once(base):
    errors = refused("sft", {"learning_rate": "fast"}, base=base)
    assert set(errors) == {"learning_rate", "dataset"}
    assert "checkpoint to start from" in refused("ppo", {"batch": 0})["base"]


def test_a_kind_without_a_trainer_is_refused(dataset, base, monkeypatch):
    monkeypatch.setattr(runs, "kinds", lambda: ["sft"])
    assert "no trainer for ct" in refused("ct", dataset=dataset, base=base)["kind"]
    assert "not one of" in refused("rlhf")["kind"]


# -- SFT and CT ----------------------------------------------------------------------------------


def test_datasets_are_mixed_by_weight(dataset, base):
    run = launch("sft", dataset=dataset, base=base, mixed=[(general(), 0.25)])
    assert [(one.dataset.name, one.weight) for one in run.mixed.all()] == [("chat", 0.25)]
    assert runs.launch_values(run)["mixed"] == {run.mixed.get().dataset_id: 0.25}


def test_data_that_does_not_fit_is_refused_by_its_field(dataset, base):
    chat, poor = general(), general("poor", "ct")
    assert "CT pool" in refused("sft", dataset=poor, base=base)["dataset"]
    assert "mix it in" in refused("sft", dataset=chat, base=base)["dataset"]
    twice = refused("sft", dataset=dataset, base=base, mixed=[(chat, 1.0), (chat, 1.0)])
    assert "twice" in twice["mixed"]
    none = refused("sft", dataset=dataset, base=base, mixed=[(chat, 0.0)])
    assert "more than 0" in none["mixed"]
    rollout = played(base)
    assert "takes none" in refused("sft", dataset=dataset, base=base, rollout=rollout)["rollout"]


def test_erased_data_and_what_learnt_it_are_refused_with_the_reason(dataset, base):
    chat, when = general(), timezone.now()
    chat.erased_at = when
    assert "deleted on" in refused("sft", dataset=dataset, base=base, mixed=[(chat, 1.0)])["mixed"]
    dataset.erased_at = when
    assert "freeze a new one" in refused("sft", dataset=dataset, base=base)["dataset"]
    base.erased_at = when
    assert "start from an earlier one" in refused("sft", dataset=dataset, base=base)["base"]


# -- critics -------------------------------------------------------------------------------------


def test_a_critic_learns_from_what_its_own_policy_played(base):
    rollout = played(base)
    run = launch("value", base=base, rollout=rollout)
    assert (run.rollout, run.name) == (rollout, "value-box-1")

    assert "choose a rollout" in refused("value", base=base)["rollout"]
    other = policy("other")
    assert "not by other" in refused("value", base=other, rollout=rollout)["rollout"]
    silent = played(base, name="silent", tokens=False)
    assert "no token ids" in refused("value", base=base, rollout=silent)["rollout"]
    empty = played(base, name="empty", rewards=())
    assert "no finished episode" in refused("value", base=base, rollout=empty)["rollout"]
    Rollout.objects.filter(pk=rollout.pk).update(state=Rollout.State.RUNNING)
    rollout.refresh_from_db()
    assert "still running" in refused("value", base=base, rollout=rollout)["rollout"]


def test_ppo_begins_its_rollout_with_it(base):
    run = launch("ppo", {"batch": 8, "updates": 2}, base=base, critic=critic(base), tasks=TASKS)
    assert run.rollout.purpose == Rollout.Purpose.TRAIN
    assert run.rollout.episodes.count() == 16
    values = runs.launch_values(run)
    assert values["tasks"] == "miniwob/click-button\nminiwob/click-test"
    assert (values["deployment"], values["rollout"]) == (None, None)


def test_ppo_refuses_a_critic_that_does_not_fit(base):
    other = policy("other")
    mine, poor = critic(base), critic(base, explains=0.01, version="poor")
    ask = {"base": base, "tasks": TASKS}
    assert "pretrain a critic of box" in refused("ppo", **ask)["critic"]
    assert "another policy" in refused("ppo", base=other, tasks=TASKS, critic=mine)["critic"]
    assert "explains 0.010" in refused("ppo", critic=poor, **ask)["critic"]
    assert "is a policy" in refused("ppo", critic=other, **ask)["critic"]
    assert "name at least one" in refused("ppo", base=base, critic=mine)["tasks"]
    assert "is a critic" in refused("ppo", base=mine, tasks=TASKS)["base"]
    small = {"batch": 4, "updates": 1}
    assert launch("ppo", small | {"any_critic": "yes"}, **ask).critic is None
    grpo = launch("ppo", small | {"advantage": "grpo", "group": 4}, critic=poor, **ask)
    assert grpo.critic is None


# -- judging and merging --------------------------------------------------------------------------


def test_a_judge_needs_successes_and_failures(base):
    rollout = played(base, rewards=(1.0, 0.0))
    assert launch("orm", base=base, rollout=rollout).rollout == rollout
    assert "a rollout or a dataset" in refused("orm", base=base)["rollout"]
    good = played(base, name="good", rewards=(1.0, 1.0))
    assert "good has 2 and 0" in refused("orm", base=base, rollout=good)["rollout"]
    rollout.purpose = Rollout.Purpose.EVALUATE
    assert "must not know" in refused("orm", base=base, rollout=rollout)["rollout"]


def test_a_judge_learns_from_a_dataset_too(base, dataset):
    assert launch("orm", base=base, dataset=dataset).rollout is None
    assert "nothing in it was judged" in refused("orm", base=base, dataset=general())["dataset"]
    dataset.erased_at = timezone.now()
    assert "deleted on" in refused("orm", base=base, dataset=dataset)["dataset"]


def test_a_merge_of_one_family_gets_its_common_root(base):
    one, two = policy("one", parent=base), policy("two", parent=base)
    run = launch("merge", sources=[(one, None), (two, None)])
    assert [s.weight for s in run.sources.all()] == [0.5, 0.5]
    assert (run.base, run.name) == (base, "merge-one-two-1")
    weighed = launch("merge", sources=[(one, 0.9), (two, 0.1)])
    assert runs.launch_values(weighed)["sources"] == {one.pk: 0.9, two.pk: 0.1}


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ((0.5, 0.6), "add up to 1.1"),
        ((1.5, -0.5), "0 or more"),
        ((0.5, None), "or none"),
        ((float("nan"), 1.0), "0 or more"),
    ],
)
def test_a_merge_refuses_weights_that_are_no_shares(base, weights, says):
    one, two = policy("one", parent=base), policy("two", parent=base)
    errors = refused("merge", sources=list(zip((one, two), weights, strict=True)))
    assert says in errors["sources"]


def test_a_merge_refuses_strangers(base):
    one = policy("one", parent=base)
    assert "at least two" in refused("merge", sources=[(one, 1.0)])["sources"]
    assert "once" in refused("merge", sources=[(one, 0.5), (one, 0.5)])["sources"]
    stranger = policy("stranger")
    parts = [(one, 0.5), (stranger, 0.5)]
    assert "different weights: box, stranger" in refused("merge", sources=parts)["sources"]
    stranger.manifest = stranger.manifest | {"dialect": "box"}
    assert "their dialect" in refused("merge", sources=parts)["sources"]
    parts = [(one, 0.5), (critic(base), 0.5)]
    assert "is a critic" in refused("merge", sources=parts)["sources"]
