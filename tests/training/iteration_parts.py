"""Iterations of paper: real rows and verbs, toys to play, and no process of a policy server."""

from __future__ import annotations

from typing import Any

import pytest

from agent import deployments
from agent.models import Deployment
from annotation.session import pictures
from sandbox.families import TaskSpec, checksum
from tests.training.rollout_toys import play_all, toys, worker  # noqa: F401
from training import jobs
from training.evaluations import suites
from training.iterations import driver, iterations, serving
from training.models import Checkpoint, Iteration, Rollout, Run

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}
CONFIG: dict[str, Any] = {
    "tasks": "toys/n2 toys/n20", "seeds": 2, "samples": 1, "max_steps": 5, "suite": "smoke",
    "evaluation_seeds": "0:10", "first_seed": 8, "sft_preset": "quick", "ct_preset": "quick",
    "rl_every": 0, "ct_every": 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path, settings, toys):  # noqa: F811
    pictures.store.cache_clear()  # it remembers the folder of the test before
    settings.RUNS_DIR = tmp_path / "runs"
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    for job in (jobs.supervise_run, jobs.advance_iterations, jobs.keep_iteration_server):
        monkeypatch.setattr(job, "apply_async", lambda *args, **more: None)
    tasks = [TaskSpec("toys", f"n{n}", "1", checksum("toys", n), width=160) for n in (2, 3)]
    recipe = suites._Recipe("Of paper", 1, lambda: tasks)
    monkeypatch.setitem(suites._RECIPES, "smoke", recipe)
    monkeypatch.setattr(serving, "ready", ready)
    yield
    pictures.store.cache_clear()


def ready(row: Iteration, wanted: Checkpoint) -> bool:
    """Stand for a server that is there at once."""
    server = row.server or serving.link_server(row, wanted)
    deployments.serves(server, base_url="http://127.0.0.1:1", version=wanted.version)
    return True


@pytest.fixture
def box(db) -> Checkpoint:
    return Checkpoint.objects.create(
        version="box", uri="/nowhere", sha256="b" * 64, manifest=MANIFEST
    )


@pytest.fixture
def partner(box) -> Deployment:
    return Deployment.objects.create(
        name="partner", kind="local", reads="elements", dialect="element", version="box",
        checkpoint_uri=box.uri, is_partner=True,
    )  # fmt: skip


@pytest.fixture
def begin(partner):
    def begin(*, count: int = 1, **config: Any) -> Iteration:
        return iterations.begin(deployment=partner, config=CONFIG | config, by=None, count=count)

    return begin


def now(row: Iteration) -> Iteration:
    return Iteration.objects.get(pk=row.pk)


def turn(row: Iteration, *, until: str = "") -> Iteration:
    """Let the driver look until nothing changes any more, or the phase `until` is reached."""
    while now(row).phase != until and driver.advance(row.pk):
        pass
    return now(row)


def play(rollout: Rollout, *, solved: int | None = None) -> None:
    """Play a rollout with toys; `solved` says of an evaluation how many seeds succeed."""
    if solved is None:
        play_all(worker())
        return
    values = {"state": "done", "steps": 2, "versions": ["v"], "outcome": "ended"}
    rollout.episodes.filter(seed__lt=solved).update(reward=1.0, **values)
    rollout.episodes.filter(seed__gte=solved).update(reward=0.0, **values)
    Rollout.objects.filter(pk=rollout.pk).update(state=Rollout.State.DONE)


def train(run: Run) -> Checkpoint:
    """End a run as its trainer would."""
    made = Checkpoint.objects.create(
        version=f"{run.name}-step-8", run=run, parent=run.base, step=8, uri=f"/{run.name}",
        sha256=run.name[-8:].rjust(64, "0"), manifest=MANIFEST,
    )  # fmt: skip
    Run.objects.filter(pk=run.pk).update(state=Run.State.SUCCEEDED, step=8)
    return made


def whole(row: Iteration, *, before: int = 4, after: int = 10) -> Iteration:
    """Turn an iteration to its end: `before` and `after` of ten seeds succeed."""
    row = turn(row)
    if row.phase == "collect":
        play(row.rollout)
        row = turn(row)
    if row.phase == "baseline":
        play(row.baseline.rollout, solved=before)
        row = turn(row)
    while row.phase in ("ct", "sft") and row.state == Iteration.State.RUNNING:
        train(getattr(row, f"{row.phase}_run"))
        row = turn(row)
    if row.phase == "evaluate":
        play(row.evaluation.rollout, solved=after)
        row = turn(row)
    return row
