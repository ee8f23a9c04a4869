"""What a trainer of each kind finds in its run directory, and what is stored of what it leaves."""

from __future__ import annotations

import json

import pytest

from agent.models import Deployment
from blobs import open_store
from tests.training.rollout_toys import play_all, toys, worker  # noqa: F401
from training.data.stream_rows import Reader
from training.models import Checkpoint, MergeSource, Run
from training.rollouts import rollouts
from training.runs import workdir
from training.runs.rundir import RunDir
from training.weights import checkpoints

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.django_db]

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}


@pytest.fixture
def base(db) -> Checkpoint:
    return Checkpoint.objects.create(
        version="box", uri="/nowhere", sha256="a" * 64, manifest=MANIFEST
    )


@pytest.fixture
def played(db):
    """A rollout of four finished episodes, two of which succeed."""
    deployment = Deployment.objects.create(
        name="paper", kind="scripted", reads="elements", dialect="element"
    )
    rollout = rollouts.create(
        name="r", deployment=deployment, tasks=[("toys", "n1"), ("toys", "n3")], seeds=[1, 2],
        config={"max_steps": 2},
    )  # fmt: skip
    play_all(worker())
    return rollout


def test_a_critic_learns_from_every_finished_episode_of_a_rollout(base, played, tmp_path):
    run = Run.objects.create(name="v", kind="value", base=base, rollout=played, config={"steps": 2})
    for _ in range(2):  # it may be made twice
        assert workdir.prepare(run, tmp_path)["rows"] == 4
    reader = Reader(tmp_path)
    found = list(reader.new())
    assert reader.ended and sorted(one.reward for one in found) == [0, 0, 1, 1]
    assert [one.sequence for one in found] == sorted(one.sequence for one in found)
    config = RunDir(tmp_path).config()
    assert (config["actor"], config["critic"], config["version"]) == ("a" * 64, "", "v")
    assert (config["steps"], config["base"], config["dialect"]) == (2, "/nowhere", "element")


def test_a_rollout_that_was_not_played_is_named(base, played, tmp_path):
    played.episodes.all().delete()
    run = Run.objects.create(name="v", kind="value", base=base, rollout=played)
    with pytest.raises(workdir.CannotPrepare, match="r has no finished episode"):
        workdir.prepare(run, tmp_path)
    run.rollout = None
    with pytest.raises(workdir.CannotPrepare, match="no rollout"):
        workdir.prepare(run, tmp_path)


def test_a_judge_learns_from_verified_episodes(base, played, tmp_path):
    run = Run.objects.create(name="o", kind="orm", base=base, rollout=played)
    assert workdir.prepare(run, tmp_path)["rows"] == 4
    assert sorted(row["truth"] for row in RunDir(tmp_path).rows()) == [0, 0, 1, 1]


def test_a_merge_is_told_its_sources_and_needs_no_base(base, tmp_path):
    run = Run.objects.create(name="m", kind="merge", config={"dtype": "float32"})
    other = Checkpoint.objects.create(version="other", uri="/there", sha256="b" * 64)
    for one, weight in ((base, 0.25), (other, 0.75)):
        MergeSource.objects.create(run=run, checkpoint=one, weight=weight)
    assert workdir.prepare(run, tmp_path) == {}
    assert RunDir(tmp_path).config()["sources"] == [
        {"uri": "/nowhere", "version": "box", "sha256": "a" * 64, "weight": 0.25},
        {"uri": "/there", "version": "other", "sha256": "b" * 64, "weight": 0.75},
    ]


def left(directory, step: int) -> None:
    """Leave what PPO leaves after an update: a critic, its policy, and the state of both."""
    for parent, role in (("critics", "critic"), ("checkpoints", "policy")):
        folder = directory / parent / f"step-{step}"
        folder.mkdir(parents=True)
        (folder / "tandem.json").write_text(json.dumps(MANIFEST | {"role": role}))
        (folder / "weights").write_text(role)
    workdir.state_of(directory, step).parent.mkdir(exist_ok=True)
    workdir.state_of(directory, step).write_bytes(b"state")


def test_a_critic_is_stored_beside_its_policy_and_both_come_back_elsewhere(
    base, tmp_path, settings
):
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    critic = Checkpoint.objects.create(version="v-step-9", role="critic", uri="/critic")
    run = Run.objects.create(name="p", kind="ppo", base=base, critic=critic)
    here, there = tmp_path / "here", tmp_path / "there"
    assert workdir.prepare(run, here) == {}
    assert RunDir(here).config()["critic"] == "/critic"
    left(here, 3)
    folders = workdir.finished_checkpoints(here)
    assert [folder.parent.name for folder in folders] == ["critics", "checkpoints"]
    made = [checkpoints.upload(run, folder) for folder in folders * 2]
    assert [(one.version, one.role, one.parent) for one in made[:2]] == [
        ("p-critic-step-3", "critic", critic),
        ("p-step-3", "policy", base),
    ]
    assert made[2:] == made[:2]

    workdir.prepare(run, there)
    assert (there / "checkpoints" / "step-3" / "weights").read_text() == "policy"
    assert (there / "critics" / "step-3" / "weights").read_text() == "critic"
    assert workdir.state_of(there, 3).read_bytes() == b"state"


def test_of_the_states_in_the_store_the_newest_two_stay(base, tmp_path, settings):
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    run = Run.objects.create(name="p", kind="ppo", base=base)
    for step in (8, 9, 10, 11):
        left(tmp_path / "here", step)
        for folder in workdir.finished_checkpoints(tmp_path / "here"):
            checkpoints.upload(run, folder)
    kept = open_store(settings.STORAGE_URL).list_keys("runs/")
    assert kept == [workdir.state_key(run, 10), workdir.state_key(run, 11)]
    workdir.prepare(run, tmp_path / "there")
    assert workdir.state_of(tmp_path / "there", 11).read_bytes() == b"state"
