"""Everything that makes a streaming RL run is killed in turn: no sample is lost, none is used twice."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from django.db import connection

from agent.models import Deployment
from sandbox import families
from tests.training.streaming_parts import (
    SUPERVISOR,
    WEB,
    WORKER,
    kill,
    ledger,
    now,
    register,
    start,
    wait_for,
)
from tests.training.test_runs import end_trainers, forget_heartbeat, queued  # noqa: F401
from training.data.stream_rows import Reader
from training.models import Checkpoint, Run
from training.runs import process, runs, supervise, workdir

pytest_plugins = ["tests.tiny"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("queued"),
]

UPDATES, BATCH, STALENESS = 7, 4, 1


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path, settings):
    settings.RUNS_DIR = tmp_path / "runs"
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    monkeypatch.setattr(supervise, "POLL_S", 0.1)
    monkeypatch.setattr(families, "load", families.load)
    register()
    yield
    end_trainers(settings.RUNS_DIR)
    for directory in settings.RUNS_DIR.glob("*/server"):
        if process.held(directory):
            process.adopt(directory).send(signal.SIGKILL)


@pytest.fixture
def run(db, tiny_llama) -> Run:
    manifest = {"dialect": "element", "observation": "elements"}
    base = Checkpoint.objects.create(
        version="tiny", uri=str(tiny_llama), sha256="a" * 64, manifest=manifest
    )
    config = {
        "updates": UPDATES, "batch": BATCH, "group": 2, "staleness": STALENESS, "save_every": 3,
        "any_critic": "yes", "lora_rank": 0, "warmup_steps": 0, "max_steps": 2, "learning_rate": 1e-4,
    }  # fmt: skip
    made = runs.launch(
        kind="ppo", base=base, config=config, by=None, name="rl", tasks=[("toys", "n1"), ("toys", "n2")]
    )  # fmt: skip
    Deployment.objects.filter(pk=made.deployment_id).update(max_tokens=12)
    return made


def supervising(run: Run) -> threading.Thread:
    def work() -> None:
        try:
            supervise.supervise(run.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_whatever_is_killed_every_episode_is_used_once(run, child_environment):
    environment = child_environment | {"OMP_NUM_THREADS": "1"}
    directory = workdir.directory_of(run)
    supervisor = start(SUPERVISOR, run.pk, environment=environment)
    worker = start(WORKER, environment=environment)
    web = start(WEB, environment=environment)
    threads = []

    def updates(count: int) -> bool:
        assert now(run).state != Run.State.FAILED, now(run).error
        return len(ledger(directory)) >= count

    try:
        wait_for(lambda: updates(1))
        kill(web)
        kill(worker)
        worker = start(WORKER, environment=environment)

        wait_for(lambda: updates(2))
        server = process.adopt(directory / "server").pid
        os.killpg(server, signal.SIGKILL)
        wait_for(lambda: updates(3))
        assert process.adopt(directory / "server").pid != server

        trainer = now(run).pid
        kill(supervisor)
        forget_heartbeat(run)
        threads.append(supervising(run))
        wait_for(lambda: updates(4))
        assert (now(run).pid, now(run).attempts) == (trainer, 1)  # adopted

        os.killpg(trainer, signal.SIGKILL)
        wait_for(lambda: now(run).state == Run.State.QUEUED)
        assert "SIGKILL" in now(run).error or "without saying why" in now(run).error
        threads[-1].join(30)
        before = ledger(directory)
        threads.append(supervising(run))
        wait_for(lambda: now(run).ended)
    finally:
        for one in (supervisor, worker, web):
            kill(one)
        for thread in threads:
            thread.join(30)
    run = now(run)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert ledger(directory)[: len(before)] == before
    check(run, directory)


def check(run: Run, directory) -> None:
    """Every finished episode is in exactly one update, and each update has its batch."""
    updates = ledger(directory)
    assert [one["update"] for one in updates] == list(range(1, UPDATES + 1))
    assert [one["version"] for one in updates] == [f"rl-step-{n}" for n in range(1, UPDATES + 1)]
    assert {len(one["episodes"]) for one in updates} == {BATCH}
    rows = run.rollout.episodes.exclude(sequence=None).order_by("sequence")
    done = [f"episode-{row.pk}-{row.claim}" for row in rows]
    assert [name for one in updates for name in one["episodes"]] == done
    assert len(set(done)) == UPDATES * BATCH

    reader = Reader(directory)
    streamed = {episode.id: episode for episode in reader.new()}
    assert reader.ended and list(streamed) == done
    assert run.rollout.state == "done"
    assert [m.step for m in run.series.all()] == list(range(1, UPDATES + 1))
    late = 0
    for one in updates:
        for name in one["episodes"]:
            for step in streamed[name].steps:
                made = int(step.version.removeprefix("rl-step-"))
                assert made < one["update"]
                late += one["update"] - 1 - made > STALENESS
    assert late <= BATCH  # of those that outlived a server or a worker
    assert not process.held(directory / "server")
    assert run.checkpoints.filter(role="policy", step=UPDATES).exists()
