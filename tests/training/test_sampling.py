"""Episodes in datasets: V(s) by the verifier or a reward model, rejection sampling, and no test set."""

from __future__ import annotations

import datetime as dt

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from agent.models import Deployment
from annotation.session import pictures
from tests.agent.judge import Judge, episode, says, text_of
from tests.training.judged import LOST, WON
from tests.training.rollout_toys import play_all, toys, worker  # noqa: F401 (a fixture)
from tests.training.sessions import make_session
from training.data import datasets
from training.data.rows import PromptFormat, rows
from training.data.sampling import Success, surplus
from training.data.selection import Filters, preview, routed
from training.data.texts import texts
from training.errors import BadConfig, EmptyDataset
from training.models import Calibration, Dataset, Episode, RewardModel, Rollout
from training.rewards import reward_models
from training.rewards.judging import NoAnswer
from training.rollouts import rollouts
from training.views import datasets as pages
from trajectory import dump_lines

DAY = dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC)


def rollout(name="collected", purpose="collect") -> Rollout:
    player = Deployment.objects.get_or_create(name="player", defaults={"kind": "scripted"})[0]
    return Rollout.objects.create(name=name, purpose=purpose, deployment=player, state="done")


def play(of: Rollout, *, reward=1.0, steps=3, task="n2", seed=0, repeat=0, **values) -> Episode:
    page = values.pop("page", WON if reward else LOST)
    record = episode(page=page, thought=f"{task} {seed} {repeat}", steps=steps, reward=reward)
    row = {"state": "done", "outcome": "finished", "finished_at": DAY, "family": "toys"} | values
    return Episode.objects.create(
        rollout=of, task=task, seed=seed, repeat=repeat, reward=reward, steps=steps,
        trajectory=pictures.store().put("".join(dump_lines([record])).encode()), **row,
    )  # fmt: skip


def freeze(name="d", pool="sft", **filters):
    return datasets.freeze(name=name, pool=pool, filters=Filters(**filters), by=None)


def held(dataset):
    return [entry.episode for entry in dataset.entries.select_related("episode")]


# -- the choice, pure --------------------------------------------------------------------------------


def test_the_shortest_successes_are_taken_per_seed_and_per_task_ties_by_id():
    given = [
        Success(1, "a", 0, 5), Success(2, "a", 0, 3), Success(3, "a", 0, 3),
        Success(4, "a", 1, 9), Success(5, "b", 0, 9), Success(6, "a", 2, 4),
    ]  # fmt: skip
    left = surplus(given, per_seed=1, per_task=2, max_steps=8)
    assert set(left) == {1, 3, 4, 5}
    assert "8 steps" in left[4]
    assert "its task and seed" in left[3]
    assert surplus(reversed(given), per_seed=1, per_task=2, max_steps=8) == left
    assert set(surplus(given, per_task=1)) == {1, 3, 4, 6}
    assert surplus(given) == {}


# -- V(s) --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_verifier_decides_and_a_broken_environment_teaches_nothing():
    one = rollout()
    won, lost = play(one), play(one, reward=0.0, seed=1)
    part = play(one, reward=0.5, seed=2)
    broken = play(one, reward=None, seed=3, state="broken")
    gone = play(one, reward=0.0, seed=4, outcome="env_failure")
    unverified = play(one, reward=None, seed=5)
    play(one, seed=6, state="running")

    dataset = freeze()
    assert held(dataset) == [won]
    assert dataset.entries.get().reason == "the verifier's reward is 1"
    reasons = {left["episode"]: left["reason"] for left in dataset.left_out}
    assert set(reasons) == {lost.pk, part.pk, broken.pk, gone.pk, unverified.pk}
    assert "environment" in reasons[broken.pk]
    assert "environment" in reasons[gone.pk]
    assert "no verifier" in reasons[unverified.pk]
    assert held(freeze("low", "ct")) == [lost, part]
    assert held(freeze("half", min_reward=0.5)) == [won, part]


@pytest.mark.django_db
def test_nothing_is_wasted_what_is_not_taken_for_sft_goes_to_ct():
    one = rollout()
    short, same = play(one, steps=2), play(one, steps=2, repeat=1)
    long, lost = play(one, steps=9, seed=1), play(one, reward=0.0, seed=2)
    chosen = {"per_seed": 1, "max_steps": 8}
    assert held(freeze("high", **chosen)) == [short]
    low = freeze("low", "ct", **chosen)
    assert held(low) == [same, long, lost]
    assert [e.reason for e in low.entries.all()] == [
        "a success beyond the 1 shortest of its task and seed",
        "a success of more than 8 steps",
        "the verifier's reward is 0",
    ]
    seen = preview(Filters(**chosen))
    assert (seen.sft, seen.ct, seen.total) == (1, 3, 4)
    assert ("ct", "a success of more than 8 steps", 1) in seen.reasons


@pytest.mark.django_db
def test_sessions_come_before_episodes_and_the_same_content_gives_the_same_bytes():
    session = make_session(task="toys/n2")
    one, other = rollout(), rollout("other")
    first, second = play(one), play(other, task="n3")
    dataset = freeze()
    assert [(e.session, e.episode) for e in dataset.entries.all()] == [
        (session, None), (None, first), (None, second),
    ]  # fmt: skip
    assert freeze("again").sha256 == dataset.sha256
    assert [t.id for t in datasets.trajectories(dataset)] == [f"session-{session.pk}", "e1", "e1"]
    assert held(freeze("e", source="episodes")) == [first, second]
    assert held(freeze("s", source="sessions")) == [None]
    assert held(freeze("r", source="episodes", rollouts=("other",))) == [second]
    assert held(freeze("t", source="episodes", task="toys/n3")) == [second]
    assert held(freeze("a", author="A-17")) == [None]
    assert held(freeze("d2", source="episodes", since=DAY.date(), until=DAY.date())) == [
        first,
        second,
    ]
    with pytest.raises(EmptyDataset):
        freeze("later", source="episodes", since=DAY.date() + dt.timedelta(1))


@pytest.mark.django_db
def test_filters_come_back_from_a_row_as_they_were():
    filters = Filters(
        source="episodes", since=DAY.date(), rollouts=("a", "b"), per_task=3, min_reward=0.5
    )
    assert Filters.from_json(filters.to_json()) == filters
    assert Filters.from_json({}) == Filters()
    assert Filters(undisputed=True).to_json() == {"undisputed": True}


# -- the test set ------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("purpose", ["evaluate", "train"])
def test_what_was_played_to_be_tested_can_not_be_learnt_from(purpose):
    play(rollout("kept", purpose))
    assert list(routed(Filters())) == []
    with pytest.raises(EmptyDataset, match="0 looked at"):
        freeze()
    with pytest.raises(BadConfig, match="rollouts: kept"):
        freeze(rollouts=("kept",))
    with pytest.raises(BadConfig, match="evaluation" if purpose == "evaluate" else "training run"):
        preview(Filters(rollouts=("kept",)))
    with pytest.raises(BadConfig, match="no rollout called 'gone'"):
        freeze(rollouts=("gone",))


@pytest.mark.django_db
def test_an_episode_whose_record_is_gone_is_left_out_with_the_reason():
    one = rollout()
    kept, lost = play(one), play(one, seed=1)
    Episode.objects.filter(pk=lost.pk).update(trajectory="ab" * 32)
    dataset = freeze()
    assert held(dataset) == [kept]
    assert "does not exist" in dataset.left_out[0]["reason"]


# -- reward models -----------------------------------------------------------------------------------


@pytest.fixture
def judge():
    server = Judge(lambda token, body: says(_word(body))(token, body))
    yield server
    server.close()


def _word(body):
    told = text_of(body)
    return "success" if WON in told else "failure" if LOST in told else "unsure"


@pytest.fixture
def orm(judge) -> RewardModel:
    asked = Deployment.objects.create(
        name="judge", kind="openai", base_url=judge.url, model="j", reads="elements", version="1"
    )
    row = reward_models.create(name="orm", kind="generative", deployment=asked)
    seen = Calibration.objects.create(
        reward_model=row, state="done", fingerprint=reward_models.fingerprint(row)
    )
    RewardModel.objects.filter(pk=row.pk).update(gates=True, gated_by=seen)
    row.refresh_from_db()
    return row


@pytest.mark.django_db
def test_a_reward_model_in_force_judges_what_no_verifier_can_and_is_named(orm, judge):
    one = rollout()
    won, lost = play(one, reward=None, page=WON), play(one, reward=None, page=LOST, seed=1)
    unsure, known = play(one, reward=None, page="?", seed=2), play(one, seed=3)
    before = preview(Filters(judge="orm"))
    assert (before.sft, before.unasked, judge.bodies) == (1, 3, [])

    high, low = freeze("high", judge="orm"), freeze("low", "ct", judge="orm")
    assert held(high) == [won, known]
    assert held(low) == [lost]
    assert [e.reason for e in high.entries.all()] == [
        "reward model orm says success", "the verifier's reward is 1",
    ]  # fmt: skip
    assert {"episode": unsure.pk, "reason": "reward model orm abstains"} in high.left_out
    assert len(judge.bodies) == 3  # what it said is remembered, also for the next preview
    after = preview(Filters(judge="orm"))
    assert (after.sft, after.ct, after.unasked) == (2, 1, 0)
    assert datasets.freeze(
        name="again", pool="sft", filters=Filters(judge="orm"), by=None
    ).sha256 == high.sha256  # fmt: skip


@pytest.mark.django_db
def test_a_reward_model_that_is_not_in_force_gates_nothing(orm):
    play(rollout(), reward=None)
    Deployment.objects.filter(name="judge").update(version="2")
    with pytest.raises(BadConfig, match="not in force"):
        freeze(judge="orm")
    with pytest.raises(BadConfig, match="no reward model called 'nobody'"):
        freeze(judge="nobody")


@pytest.mark.django_db
def test_a_reward_model_that_does_not_answer_freezes_nothing(orm, judge):
    play(rollout(), reward=None)
    judge.answer = lambda token, body: (500, {"error": "down"})
    with pytest.raises(NoAnswer, match="orm gave no answer"):
        freeze(judge="orm")


@pytest.mark.django_db
def test_a_page_does_not_wait_for_many_judgements_the_command_does(
    orm, judge, client, admin_user, monkeypatch, capsys
):
    one = rollout()
    for seed in range(2):
        play(one, reward=None, page=WON, seed=seed)
    monkeypatch.setattr(pages, "MAX_UNASKED", 1)
    client.force_login(admin_user)
    values = {"name": "high", "pool": "sft", "judge": "orm"}
    answer = client.post(reverse("training:new-dataset"), values)
    assert b"orm has yet to judge 2 episodes" in answer.content
    assert judge.bodies == []
    call_command("freeze", "high", "--pool", "sft", "--judge", "orm", "--rollouts", "collected")
    assert "high: 2 trajectories" in capsys.readouterr().out
    assert Dataset.objects.get().filters == {"judge": "orm", "rollouts": ["collected"]}
    with pytest.raises(CommandError, match="there is a dataset called 'high'"):
        call_command("freeze", "high", "--pool", "sft")


# -- what a worker has really played -----------------------------------------------------------------


@pytest.mark.usefixtures("toys")
@pytest.mark.django_db(transaction=True)
def test_what_a_worker_played_becomes_a_dataset_and_its_rows():
    player = Deployment.objects.create(
        name="paper", kind="scripted", reads="elements", dialect="element"
    )
    rollouts.create(
        name="r", deployment=player, tasks=[("toys", "n2"), ("toys", "n9")], seeds=[0, 1],
        config={"max_steps": 4},
    )  # fmt: skip
    play_all(worker())
    high, low = freeze("high", per_task=1), freeze("low", "ct", per_task=1)
    assert [str(entry.episode) for entry in high.entries.all()] == ["toys/n2#0"]
    assert [str(entry.episode) for entry in low.entries.all()] == [
        "toys/n9#0", "toys/n2#1", "toys/n9#1",
    ]  # fmt: skip
    form = PromptFormat.of_deployment(player)
    (episode,) = held(high)
    names = [f"episode-{episode.pk}-1/{n}" for n in range(2)]
    assert [row.id for row in rows(datasets.trajectories(high), form)] == names
    assert {row.loss for row in texts(datasets.trajectories(low), form)} == {"all"}
