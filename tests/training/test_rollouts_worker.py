"""The worker: what is played and kept, whose fault a failure is, and what a stop leaves behind."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from django.utils import timezone

from agent.memory import ByChat, InWords
from agent.models import Deployment
from agent.policy import PolicyMisconfigured, PolicyRefused, PolicyUnreachable
from annotation.session import pictures
from blobs import StoreUnreachable
from sandbox import providers
from sandbox.models import Lease, Sandbox
from sandbox.provider import SandboxSpec
from sandbox.verdict import Verdict
from tests.training.rollout_toys import (  # noqa: F401
    Clicker,
    PaperPages,
    play_all,
    toys,
    worker,
)
from tests.waiting import until
from training.models import Episode, Rollout, RolloutWorker
from training.rollouts import episodes, record, rollouts
from training.rollouts.config import read_config
from training.rollouts.policies import memory_of
from training.rollouts.slots import Slots, Stopped
from trajectory import Outcome

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.django_db]


@pytest.fixture
def make(db):
    deployment = Deployment.objects.create(
        name="paper", kind="scripted", reads="elements", dialect="element"
    )

    def make(n: int = 6, name: str = "r", task: str = "n3", **config) -> Rollout:
        return rollouts.create(
            name=name, deployment=deployment, tasks=[("toys", task)], seeds=range(n), config=config
        )

    return make


def states(rollout) -> dict[str, int]:
    found: dict[str, int] = {}
    for state in rollout.episodes.values_list("state", flat=True):
        found[state] = found.get(state, 0) + 1
    return found


def until_paused(rollout, player) -> None:
    def paused() -> bool:
        player.step()
        rollout.refresh_from_db()
        return rollout.state == Rollout.State.PAUSED and not player.running

    until(paused)


class Running:
    """A worker in a thread whose rows are the test's: only for tests with real commits."""

    def __init__(self, player):
        from django.db import connection

        self.stopping = threading.Event()

        def run():
            player.run(self.stopping)
            connection.close()

        self.thread = threading.Thread(target=run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(100)


def test_episodes_are_played_judged_and_kept_with_what_was_sampled(make):
    rollout = make(6, slots=2)
    pages = PaperPages()
    play_all(worker(pages))
    rollout.refresh_from_db()
    assert rollout.state == Rollout.State.DONE and rollout.finished_at
    rows = episodes.finished()
    assert len(rows) == 6 and {row.reward for row in rows} == {1.0}
    assert {row.outcome for row in rows} == {Outcome.ENDED} and {row.steps for row in rows} == {3}
    kept = record.read(rows[0], pictures.store())
    assert kept.metadata["task"] == "n3" and kept.metadata["rollout"] == "r" and kept.reward == 1
    assert kept.steps[0].sample.output_logprobs == (-0.5, -0.25)
    assert pictures.store().get(kept.steps[0].observation.screenshot)
    assert all(page.closed for page in pages.opened)
    row = RolloutWorker.objects.get()
    assert row.stopped_at and row.environments == 8


def test_without_pictures_none_is_kept(make):
    make(1, picture=False)
    play_all(worker())
    kept = record.read(episodes.finished()[0], pictures.store())
    assert {step.observation.screenshot for step in kept.steps} == {record.NO_PICTURE}


def test_a_lost_page_costs_an_attempt_on_a_fresh_one_with_the_same_seed(make):
    rollout = make(4)
    pages = PaperPages(lambda n: 1 if n in (0, 1) else None)
    play_all(worker(pages, environments=2))
    assert states(rollout) == {"done": 4} and len(pages.opened) == 6
    broken = rollout.episodes.filter(attempts=1)
    assert broken.count() == 2
    for row in broken:
        assert row.failures[0]["cause"] == "desktop lost" and row.reward == 1.0
        assert "signal 9" in row.failures[0]["detail"]


def test_an_environment_that_always_breaks_gives_no_reward(make):
    rollout = make(2, attempts=2)
    play_all(worker(PaperPages(lambda n: 0)))
    assert states(rollout) == {"broken": 2}
    assert set(rollout.episodes.values_list("reward", "outcome")) == {(None, "")}


def test_a_setup_that_breaks_is_the_environments_fault(make, toys, monkeypatch):  # noqa: F811
    def broken(*_, **__):
        raise KeyError("seed")

    monkeypatch.setattr(toys, "setup", broken)
    rollout = make(1, attempts=1)
    play_all(worker())
    assert "setup broke: KeyError" in rollout.episodes.get().failures[0]["detail"]


def test_an_episode_that_takes_too_long_is_judged_as_it_stands(make, monkeypatch):
    policy, clock = Clicker(), time.monotonic
    # Each answer takes 100 s by the clock that the episode is timed with.
    slow = SimpleNamespace(monotonic=lambda: clock() + 100 * policy.asked)
    monkeypatch.setattr("training.rollouts.play.time", slow)
    rollout = make(1, task="n30", episode_s=600)
    play_all(worker(policy=policy))
    row = rollout.episodes.get()
    assert row.outcome == Outcome.TIMED_OUT and row.reward == 0.0 and 1 < row.steps < 30


def test_a_step_that_takes_too_long_is_the_environments_fault(make, toys, monkeypatch):  # noqa: F811
    monkeypatch.setattr(toys, "advance", lambda desktop, task: time.sleep(0.2), raising=False)
    rollout = make(1, step_s=0.1, attempts=1)
    play_all(worker())
    assert rollout.episodes.get().failures[0]["cause"] == "too slow"


def test_a_policy_that_is_away_for_a_while_costs_nothing(make):
    class Away(Clicker):
        def propose(self, request, k):
            answer = super().propose(request, k)
            if self.asked in (2, 3):
                raise PolicyUnreachable("connection refused")
            return answer

    rollout = make(2)
    play_all(worker(policy=Away()))
    assert states(rollout) == {"done": 2}
    assert set(rollout.episodes.values_list("attempts", flat=True)) == {0}
    assert max(rollout.episodes.values_list("waited_seconds", flat=True)) >= 0.5


@pytest.mark.parametrize(
    "error", [PolicyUnreachable("nobody at :1"), PolicyRefused("no such model")]
)
def test_a_policy_that_stays_away_pauses_the_rollout_with_the_reason(make, error):
    class Gone(Clicker):
        def propose(self, request, k):
            raise error

    rollout = make(3, patience_s=1)
    until_paused(rollout, worker(policy=Gone()))
    assert str(error) in rollout.error
    assert states(rollout) == {"waiting": 3}
    assert set(rollout.episodes.values_list("attempts", flat=True)) == {0}


def test_a_store_that_is_away_pauses_the_rollout_and_costs_no_attempt(make, monkeypatch):
    def away(png):
        raise StoreUnreachable("nothing answers at s3")

    monkeypatch.setattr(pictures, "put", away)
    rollout = make(2)
    until_paused(rollout, worker())
    assert "nothing answers at s3" in rollout.error
    assert set(rollout.episodes.values_list("state", "attempts")) == {("waiting", 0)}


def test_slots_are_given_in_the_order_of_asking_and_metered():
    slots = Slots(1)
    slots.take(lambda: False)
    order: list[int] = []

    def ask(n):
        slots.take(lambda: False)
        order.append(n)
        slots.give()

    threads = []
    for n in range(3):
        threads.append(threading.Thread(target=ask, args=(n,)))
        threads[-1].start()
        until(lambda n=n: slots.waiting == n + 1)
    with pytest.raises(Stopped):
        slots.take(lambda: True)
    slots.give()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2] and slots.waiting == 0
    assert 0 < slots.meter.share() <= 1
    slots.take(lambda: True)  # one is free: nobody is asked whether to stop


@pytest.mark.django_db(transaction=True)
def test_unfinished_episodes_go_on_under_the_next_version_and_through_a_pause(make):
    version, answers = ["v1"], threading.Event()

    class Slow(Clicker):
        def propose(self, request, k):
            if len(request.history) == 2:
                waiting.append(request)
                assert answers.wait(60)
            return super().propose(request, k)

    waiting: list[object] = []
    rollout = make(3, task="n30")
    policy = Slow(version=lambda: version[0])
    player = worker(policy=policy)
    with Running(player):
        until(lambda: len(waiting) == 3)  # each has been answered twice
        version[0] = "v2"
        rollouts.pause(rollout)
        until(lambda: not any(job.control.go.is_set() for job in list(player.running.values())))
        answers.set()
        until(lambda: policy.asked == 9)  # what was asked before is answered
        time.sleep(0.5)
        assert policy.asked == 9 and states(rollout) == {"running": 3}
        rollouts.resume(rollout)
        until(lambda: states(rollout) == {"done": 3})
    for row in rollout.episodes.all():
        assert row.versions == ["v1", "v2"] and row.claim == 1 and row.waited_seconds > 0.2
        said = [step.model_version for step in record.read(row, pictures.store()).steps]
        assert said == sorted(said) and set(said) == {"v1", "v2"}


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_goes_gives_back_what_it_was_playing(make):
    rollout = make(3, task="n30")
    policy = Clicker(0.1)
    pages = PaperPages()
    with Running(worker(pages, policy=policy)):
        until(lambda: policy.asked > 5)
    assert states(rollout) == {"waiting": 3}
    assert all(page.closed for page in pages.opened)
    assert set(rollout.episodes.values_list("attempts", flat=True)) == {0}
    play_all(worker())
    assert states(rollout) == {"done": 3}


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_rollout_lets_go_of_its_pages(make):
    rollout = make(3, task="n30")
    policy = Clicker(0.1)
    player = worker(policy=policy)
    with Running(player):
        until(lambda: policy.asked > 3)
        rollouts.cancel(rollout)
        until(lambda: not player.running)
    assert states(rollout) == {"cancelled": 3}
    assert Episode.objects.filter(sequence__isnull=False).count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_task_of_a_desktop_is_played_on_a_leased_one_that_is_given_back(make, toys, monkeypatch):  # noqa: F811
    fake = providers.load("fake")
    handle = fake.start(SandboxSpec(name="desk"))
    task = replace(toys.tasks[0], name="desk", surface="desktop")
    monkeypatch.setattr(toys, "tasks", (task,))
    monkeypatch.setattr(toys, "setup", lambda desktop, task, seed, *, epoch: "Click.")
    monkeypatch.setattr(
        toys, "verify", lambda *_, answer="", gave_up=False: Verdict(1.0, "clicked", True)
    )
    rollout = make(1, task="desk")
    with Running(worker()):
        until(lambda: states(rollout) == {"running": 1})  # no desktop is ready: it waits
        Sandbox.objects.create(
            name="desk", provider="fake", host="here", state=Sandbox.State.READY,
            handle=Sandbox.handle_record(handle), ready_at=timezone.now(),
        )  # fmt: skip
        until(lambda: states(rollout) == {"done": 1})
    lease = Lease.objects.get()
    assert lease.purpose == "agent" and lease.state == Lease.State.RELEASED
    assert rollout.episodes.get().attempts == 0
    fake.stop(handle)


def test_summaries_are_written_by_the_model_only_where_it_can_write():
    class Silent:
        def propose(self, request, k):
            return []

    class Chats(Silent):
        def chat(self, messages, max_tokens):
            return "said", "v"

    asked = read_config({"summaries": True})
    with pytest.raises(PolicyMisconfigured, match="writes no summaries"):
        memory_of(Silent(), asked)
    assert isinstance(memory_of(Chats(), asked).summariser, ByChat)
    assert isinstance(memory_of(Silent(), read_config({})).summariser, InWords)
