"""The thread from sessions to a checkpoint that answers, with the real trainer and a tiny model."""

from __future__ import annotations

import os
import signal

import pytest

from agent.serving.manifest import read_manifest
from tests.training.sessions import make_session
from tests.training.test_runs import (
    end_trainers,
    forget_heartbeat,
    killed_supervisor,
    now,
    queued,  # noqa: F401  (a fixture)
    supervising,  # noqa: F401  (a fixture)
)
from tests.waiting import until
from training.data import datasets
from training.data.selection import Filters
from training.models import Checkpoint, Run
from training.runs import process, runs, supervise, workdir

pytest_plugins = ["tests.tiny"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("queued"),
]


@pytest.fixture(autouse=True)
def place(tmp_path, settings, monkeypatch):
    settings.RUNS_DIR = tmp_path / "runs"
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    monkeypatch.setattr(supervise, "POLL_S", 0.1)
    yield
    end_trainers(settings.RUNS_DIR)


@pytest.fixture
def launch(db, tiny_llama):
    def launch(**config):
        for n in range(4):
            make_session(task=f"t/{n}")
        manifest = {"dialect": "element", "observation": "elements"}
        base = Checkpoint.objects.create(version="tiny", uri=str(tiny_llama), manifest=manifest)
        dataset = datasets.freeze(name="d", pool="sft", filters=Filters(), by=None)
        values = {"batch_size": 2, "lora_rank": 4, "warmup_steps": 1, "learning_rate": 0.01}
        return runs.launch(kind="sft", dataset=dataset, base=base, config=values | config, by=None)

    return launch


def test_sessions_become_a_checkpoint_with_its_lineage(launch, tmp_path):
    run = launch(steps=6, save_every=3)
    supervise.supervise(run.pk)
    run = now(run)
    assert run.state == Run.State.SUCCEEDED, run.error
    losses = [m.values["loss"] for m in run.series.all()]
    assert len(losses) == 6
    assert losses[-1] < losses[0]
    last = run.checkpoints.order_by("-step").first()
    assert (last.version, last.step, last.manifest["kind"]) == (f"{run.name}-step-6", 6, "lora")
    assert last.metrics["loss"] == losses[-1]
    folder = tmp_path / "store" / "checkpoints" / last.version
    assert read_manifest(folder).version == last.version
    assert last.uri == f"file://{folder}"


def test_supervisor_and_trainer_are_killed_and_the_run_ends_as_if_nothing_had_been(
    launch,
    child_environment,
    supervising,  # noqa: F811
):
    run = launch(steps=20_000, save_every=2)  # more than anybody waits for
    killed_supervisor(run, child_environment, trainers="training.trainers")
    pid, directory = now(run).pid, workdir.directory_of(run)
    assert process.held(directory)
    forget_heartbeat(run)
    thread = supervising(run)
    until(lambda: now(run).checkpoints.exists(), deadline_s=120)
    assert (now(run).pid, now(run).attempts) == (pid, 1)

    os.killpg(pid, signal.SIGKILL)
    thread.join(100)
    assert now(run).state == Run.State.QUEUED  # it goes on by itself

    thread = supervising(now(run))
    before = now(run).step
    until(lambda: now(run).step > before, deadline_s=120)
    runs.cancel(now(run))
    thread.join(120)
    run = now(run)
    assert run.state == Run.State.CANCELLED, run.error
    assert run.checkpoints.order_by("-step").first().step == run.step
    assert [m.step for m in run.series.all()] == list(range(1, run.step + 1))
