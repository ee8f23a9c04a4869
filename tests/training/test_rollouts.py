"""The rows of a rollout: what is admitted, handed out, taken back, counted once and streamed."""

from __future__ import annotations

import dataclasses
import random
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from agent.models import Deployment
from tests.training.rollout_toys import toys  # noqa: F401
from training.errors import BadConfig, NameTaken, WrongState
from training.models import Episode, Rollout
from training.rollouts import episodes, rollouts
from training.rollouts.admission import admitted
from training.rollouts.config import RolloutConfig, read_config

pytestmark = pytest.mark.usefixtures("toys")

RESULT = episodes.Result(outcome="ended", reward=1.0, trajectory="a" * 64, steps=3)


@pytest.fixture
def deployment(db) -> Deployment:
    return Deployment.objects.create(
        name="paper", kind="scripted", reads="elements", dialect="element"
    )


@pytest.fixture
def make(deployment):
    def make(n: int = 4, name: str = "r", **config) -> Rollout:
        return rollouts.create(
            name=name, deployment=deployment, tasks=[("toys", "n3")], seeds=range(n), config=config
        )

    return make


# -- the configuration and the bound -----------------------------------------------------------


def test_a_configuration_names_each_field_that_is_wrong():
    with pytest.raises(BadConfig) as refused:
        read_config({"attempts": "0", "temperature": "warm", "colour": 1, "picture": "maybe"})
    assert set(refused.value.errors) == {"attempts", "temperature", "colour", "picture"}
    assert read_config({"picture": "no", "staleness": "4"}).staleness == 4
    assert read_config(RolloutConfig().as_dict()) == RolloutConfig()


def test_admission_is_areals_formula():
    # min(max_concurrent - running, (eta + version + 1) * batch - (accepted + running))
    assert admitted(running=3, concurrency=10) == 7
    assert admitted(running=0, concurrency=100, accepted=0, version=0, batch=8, staleness=0) == 8
    assert admitted(running=8, concurrency=100, accepted=0, version=0, batch=8, staleness=0) == 0
    assert admitted(running=2, concurrency=100, accepted=6, version=0, batch=8, staleness=4) == 32
    assert admitted(running=2, concurrency=100, accepted=38, version=1, batch=8, staleness=4) == 8
    assert admitted(running=12, concurrency=10) == 0


@pytest.mark.parametrize("eta", [0, 1, 4])
@pytest.mark.parametrize("in_order", [True, False])
def test_episodes_run_no_further_ahead_of_the_trainer_than_the_bound(eta, in_order):
    """A trainer that takes the oldest first, beside workers that begin whatever they may."""
    chance, batch, version = random.Random(eta), 4, 0
    running: list[int] = []
    finished: list[int] = []
    accepted = 0
    for _ in range(2000):
        room = admitted(
            running=len(running), concurrency=20, accepted=accepted, version=version,
            batch=batch, staleness=eta,
        )  # fmt: skip
        running += [version] * room
        assert accepted + len(running) <= (eta + version + 1) * batch
        if running and chance.random() < 0.7:
            at = 0 if in_order else chance.randrange(len(running))
            finished.append(running.pop(at))
            accepted += 1
        if len(finished) >= batch:
            taken, finished = finished[:batch], finished[batch:]
            if in_order:
                assert max(version - begun for begun in taken) <= eta
            version += 1
    assert version > 100


def test_what_cannot_be_played_is_refused_with_the_field(make, deployment):
    with pytest.raises(BadConfig, match="tasks: toys has no task 'n99'"):
        rollouts.create(name="x", deployment=deployment, tasks=[("toys", "n99")], seeds=[1])
    with pytest.raises(BadConfig, match="seeds: give at least one"):
        rollouts.create(name="x", deployment=deployment, tasks=[("toys", "n1")], seeds=[])
    with pytest.raises(BadConfig, match="elements: paper reads elements"):
        make(elements=False)
    make(name="twice")
    with pytest.raises(NameTaken, match="twice"):
        make(name="twice")


# -- handing out -------------------------------------------------------------------------------


def test_an_episode_is_made_for_each_task_seed_and_repeat(deployment):
    rollout = rollouts.create(
        name="r", deployment=deployment, tasks=[("toys", "n1"), ("toys", "n2")], seeds=[7, 8, 7],
        repeats=3,
    )  # fmt: skip
    assert rollout.total == rollout.episodes.count() == 12


def test_no_more_is_claimed_than_is_admitted(make):
    rollout = make(10, concurrency=3)
    assert len(episodes.claim(worker="a", n=8)) == 3
    assert episodes.claim(worker="b", n=8) == []
    assert episodes.room(rollout) == 0


def test_the_bound_holds_episodes_back_until_the_trainer_moves(make):
    rollout = make(20, staleness=1, batch=3)
    first = episodes.claim(worker="a", n=20)
    assert len(first) == 6
    for row in first:
        episodes.finish(row.pk, row.claim, RESULT)
    assert episodes.claim(worker="a", n=20) == []
    rollouts.advance(rollout)
    late = episodes.claim(worker="a", n=20)
    assert len(late) == 3 and {row.admitted for row in late} == {1}
    rollouts.advance(rollout)
    assert episodes.finish(late[0].pk, late[0].claim, RESULT).staleness == 1


def test_an_episode_counts_once_for_the_newest_claim_only(make):
    make(1)
    (old,) = episodes.claim(worker="a", n=1)
    Episode.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert episodes.reap() == 1
    (new,) = episodes.claim(worker="b", n=1)
    assert new.pk == old.pk and new.claim == old.claim + 1
    assert episodes.finish(old.pk, old.claim, RESULT) is None
    assert not episodes.give_back(old.pk, old.claim)
    done = episodes.finish(new.pk, new.claim, RESULT)
    assert episodes.finish(new.pk, new.claim, RESULT) is None
    assert done.failures[0]["cause"] == "worker lost" and done.attempts == 1
    assert [row.pk for row in episodes.finished()] == [new.pk]


def test_a_broken_environment_gets_another_attempt_and_never_a_reward(make):
    rollout = make(1, attempts=2)
    for attempt in (1, 2):
        (row,) = episodes.claim(worker="a", n=1)
        row = episodes.fail_environment(row.pk, row.claim, cause="desktop lost", detail="signal 9")
        assert row.attempts == attempt and row.seed == 0
    assert row.state == Episode.State.BROKEN and row.reward is None and row.sequence is None
    assert [f["cause"] for f in row.failures] == ["desktop lost"] * 2
    rollout.refresh_from_db()
    assert rollout.state == Rollout.State.DONE and episodes.finished() == []


def test_what_is_given_back_costs_no_attempt(make):
    make(1)
    (row,) = episodes.claim(worker="a", n=1)
    assert episodes.give_back(row.pk, row.claim)
    (again,) = episodes.claim(worker="a", n=1)
    assert again.attempts == 0 and again.claim == 2


def test_a_beat_keeps_episodes_and_tells_which_were_taken_away(make):
    rollout = make(2)
    first, second = episodes.claim(worker="a", n=2)
    Episode.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert episodes.beat(worker="a", steps={first.pk: 5}) == {first.pk: 1, second.pk: 1}
    assert episodes.reap() == 0
    first.refresh_from_db()
    assert first.steps == 5
    rollouts.cancel(rollout)
    assert episodes.beat(worker="a", steps={}) == {}


# -- pause, drain, cancel ----------------------------------------------------------------------


def test_a_paused_rollout_hands_out_nothing_until_it_is_resumed(make):
    rollout = make()
    rollouts.pause(rollout, reason="the policy is away")
    assert episodes.claim(worker="a", n=9) == []
    rollout.refresh_from_db()
    assert rollout.error == "the policy is away"
    rollouts.resume(rollout)
    assert len(episodes.claim(worker="a", n=9)) == 4
    with pytest.raises(WrongState, match="running"):
        rollouts.resume(rollout)


def test_no_text_of_a_page_or_a_policy_keeps_an_episode_from_its_row(make):
    make(2, attempts=1)
    first, second = episodes.claim(worker="a", n=2)
    odd = "typed \x00 and \ud83d"
    told = dataclasses.replace(RESULT, verdict={"detail": odd, odd: [odd]}, versions=[odd])
    done = episodes.finish(first.pk, first.claim, told)
    broken = episodes.fail_environment(second.pk, second.claim, cause="x", detail=odd)
    assert done.verdict["detail"] == broken.failures[0]["detail"] == "typed \ufffd and ?"


def test_a_drained_rollout_ends_with_what_was_running(make):
    rollout = make(5)
    (row,) = episodes.claim(worker="a", n=1)
    rollouts.drain(rollout)
    assert episodes.claim(worker="a", n=1) == []
    episodes.finish(row.pk, row.claim, RESULT)
    rollout.refresh_from_db()
    assert rollout.state == Rollout.State.DONE
    states = sorted(rollout.episodes.values_list("state", flat=True))
    assert states == ["cancelled"] * 4 + ["done"]


def test_a_cancelled_rollout_counts_nothing_any_more(make):
    rollout = make(2)
    (row,) = episodes.claim(worker="a", n=1)
    rollouts.cancel(rollout)
    assert episodes.finish(row.pk, row.claim, RESULT) is None
    assert set(rollout.episodes.values_list("state", flat=True)) == {"cancelled"}
    with pytest.raises(WrongState):
        rollouts.cancel(rollout)


# -- many at once ------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_workers_that_claim_at_once_share_the_episodes(make):
    make(40, concurrency=100)
    taken: list[int] = []

    def grab(name):
        try:
            for _ in range(20):
                taken.extend(row.pk for row in episodes.claim(worker=name, n=3))
        finally:
            connection.close()

    threads = [threading.Thread(target=grab, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 40


@pytest.mark.django_db(transaction=True)
def test_a_reader_with_a_cursor_misses_none(make):
    """One that finishes first but commits last must not be overtaken by a later number."""
    make(2)
    first, second = episodes.claim(worker="a", n=2)
    inside, leave = threading.Event(), threading.Event()

    def slow():
        with transaction.atomic():
            episodes.finish(first.pk, first.claim, RESULT)
            inside.set()
            leave.wait(60)
        connection.close()

    def quick():
        episodes.finish(second.pk, second.claim, RESULT)
        connection.close()

    one, two = threading.Thread(target=slow), threading.Thread(target=quick)
    one.start()
    assert inside.wait(60)
    two.start()
    assert episodes.finished() == []  # neither is visible: the second waits for the first
    leave.set()
    one.join()
    two.join()
    seen = episodes.finished(after=0, limit=1)
    seen += episodes.finished(after=seen[-1].sequence)
    assert [row.pk for row in seen] == [first.pk, second.pk]
