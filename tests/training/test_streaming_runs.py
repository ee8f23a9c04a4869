"""An RL run from its launch to its end, with a trainer that is a process but learns nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from django.db import connection

from tests.training.rollout_toys import Clicker, toys, worker  # noqa: F401
from tests.training.streaming_parts import ledger
from tests.training.test_runs import end_trainers, now, queued, supervising  # noqa: F401
from tests.training.test_streaming import Untold, server  # noqa: F401
from tests.waiting import until
from training.models import Checkpoint, Rollout, Run
from training.runs import process, runs, supervise, workdir

# ruff: noqa: F811

pytestmark = [
    pytest.mark.usefixtures("toys", "queued", "server"),
    pytest.mark.django_db(transaction=True),
]

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements", "version": "tiny"}
State = Run.State


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path, settings):
    settings.RUNS_DIR = tmp_path / "runs"
    monkeypatch.setattr(runs, "TRAINERS", "tests.training.standin")
    monkeypatch.setattr(supervise, "TRAINERS", "tests.training.standin")
    monkeypatch.setattr(supervise, "POLL_S", 0.05)
    yield
    end_trainers(settings.RUNS_DIR)


@pytest.fixture
def launch(tmp_path: Path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "tandem.json").write_text(json.dumps(MANIFEST))
    base = Checkpoint.objects.create(version="tiny", uri=str(folder), manifest=MANIFEST)

    def launch(**config) -> Run:
        small = {"updates": 4, "batch": 4, "group": 2, "any_critic": "yes", "save_every": 2}
        return runs.launch(
            kind="ppo", base=base, config=small | config, by=None, name="rl", tasks=[("toys", "n1")]
        )

    return launch


@pytest.fixture
def playing(request):
    """A rollout worker beside the test, until its end."""
    stopping = threading.Event()
    policy = request.param() if hasattr(request, "param") else Clicker()
    player = worker(policy=policy)

    def work() -> None:
        player.run(stopping)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield player
    stopping.set()
    thread.join(100)


def rollout_of(run: Run) -> Rollout:
    return Rollout.objects.get(pk=run.rollout_id)


def used(run: Run) -> list[str]:
    return [name for one in ledger(workdir.directory_of(run)) for name in one["episodes"]]


def finished(run: Run) -> list[str]:
    rows = rollout_of(run).episodes.exclude(sequence=None).order_by("sequence")
    return [f"episode-{row.pk}-{row.claim}" for row in rows]


def test_a_run_uses_its_episodes_and_ends_with_its_rollout(launch, playing, supervising):
    run = launch()
    supervising(run).join(100)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert used(run) == finished(run) and len(used(run)) == 16
    assert rollout_of(run).state == Rollout.State.DONE
    assert [c.step for c in run.checkpoints.order_by("step")] == [2, 4]
    assert (run.step, run.metrics["episodes"]) == (4, 4)


def test_a_cancelled_run_leaves_its_episodes_waiting_and_goes_on_with_them(
    launch, supervising, request
):
    run = launch(staleness=0)
    thread = supervising(run)
    until(lambda: rollout_of(run).state == Rollout.State.RUNNING)
    runs.cancel(now(run))
    thread.join(100)
    assert now(run).state == State.CANCELLED
    rollout = rollout_of(run)
    assert rollout.state == Rollout.State.PAUSED and "cancelled" in rollout.error

    request.getfixturevalue("playing")
    runs.resume(now(run))
    supervising(now(run)).join(100)
    assert now(run).state == State.SUCCEEDED, now(run).error
    assert used(run) == finished(run) and len(used(run)) == 16


def test_a_worker_that_goes_down_leaves_episodes_waiting_for_the_next(launch, supervising):
    run = launch()
    thread = supervising(run)
    until(lambda: rollout_of(run).state == Rollout.State.RUNNING)
    supervise.shutting_down.set()
    try:
        thread.join(100)
    finally:
        supervise.shutting_down.clear()
    assert now(run).state == State.QUEUED
    assert rollout_of(run).state == Rollout.State.PAUSED
    assert not process.held(workdir.directory_of(run))


@pytest.mark.parametrize("playing", [Untold], indirect=True)
def test_a_run_that_gets_nothing_to_learn_from_says_so(launch, playing, supervising):
    run = launch(staleness=0)
    supervising(run).join(100)
    run = now(run)
    assert run.state == State.FAILED and "has no token ids" in run.error
    assert "our own policy server" in run.error
    assert rollout_of(run).state == Rollout.State.PAUSED
