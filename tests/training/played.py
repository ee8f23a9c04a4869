"""What runs of every kind start from: policies, critics, datasets, and rollouts with their tokens."""

from __future__ import annotations

import dataclasses

import pytest

from agent.models import Deployment
from annotation.session import pictures
from tests.agent.judge import episode
from tests.training.sessions import make_session
from training import jobs
from training.data import datasets
from training.data.selection import Filters
from training.models import Checkpoint, Dataset, Episode, Rollout, Run
from training.runs import runs
from trajectory import Sample, dump_lines

MANIFEST = {"format": 1, "kind": "lora", "dialect": "element", "observation": "elements"}


@pytest.fixture(autouse=True)
def every_kind(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Launch every kind, whatever trainers are installed; returns what was put into the queue."""
    queued: list[int] = []
    monkeypatch.setattr(runs, "kinds", lambda: list(Run.Kind.values))
    monkeypatch.setattr(jobs.supervise_run, "apply_async", lambda args, **_: queued.append(args[0]))
    return queued


@pytest.fixture
def base(db: None) -> Checkpoint:
    return policy("box")


@pytest.fixture
def dataset(db: None) -> Dataset:
    make_session()
    return datasets.freeze(name="clicks", pool="sft", filters=Filters(), by=None)


def policy(version: str, **changes: object) -> Checkpoint:
    values: dict[str, object] = {
        "uri": f"/{version}", "manifest": MANIFEST, "sha256": (version * 64)[:64]
    }  # fmt: skip
    return Checkpoint.objects.create(version=version, **values | changes)


def critic(actor: Checkpoint, *, explains: float = 0.5, version: str = "critic") -> Checkpoint:
    manifest = MANIFEST | {"role": "critic", "actor": actor.sha256, "explained_variance": explains}
    return policy(version, role=Checkpoint.Role.CRITIC, manifest=manifest, parent=actor)


def played(
    by: Checkpoint,
    *,
    name: str = "played",
    rewards: tuple[float, ...] = (1.0, 0.0),
    tokens: bool = True,
) -> Rollout:
    """Make an ended rollout; with `tokens` its steps say what was sampled."""
    deployment, _ = Deployment.objects.get_or_create(
        name=f"plays-{by.version}",
        defaults={"version": by.version, "reads": "elements", "dialect": "element"},
    )
    rollout = Rollout.objects.create(name=name, deployment=deployment, state=Rollout.State.DONE)
    for seed, reward in enumerate(rewards):
        record = episode(page="Order placed", thought=f"Try {seed}.")
        if tokens:
            sample = Sample((1, 2, 3), (4, 5), (-0.1, -0.2), by.version)
            steps = tuple(dataclasses.replace(step, sample=sample) for step in record.steps)
            record = dataclasses.replace(record, steps=steps)
        (line,) = dump_lines([record])
        Episode.objects.create(
            rollout=rollout, family="miniwob", task="click-test", seed=seed, reward=reward,
            state=Episode.State.DONE, steps=3, outcome="finished", versions=[by.version],
            trajectory=pictures.store().put(line.encode()),
        )  # fmt: skip
    return rollout
