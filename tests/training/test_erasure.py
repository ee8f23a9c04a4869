"""Deleting a contributor's data: every row and file of it, every mark, and being killed halfway."""

from __future__ import annotations

import datetime as dt
import logging

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agent.models import Deployment
from annotation.data import pseudonyms
from annotation.data.erasure import StillGoingOn
from annotation.models import (
    Decision,
    DecisionPoint,
    Proposal,
    Pseudonym,
    Session,
    Skip,
    Step,
    Task,
)
from annotation.session import pictures
from blobs import StoreUnreachable, open_store
from sandbox.models import InputEvent, Lease, Sandbox
from tests.training.sessions import make_session, observation
from tests.training.test_lineage import checkpoint, train
from tests.training.test_sampling import play, rollout
from training import erasure
from training.data import datasets
from training.data.selection import Filters
from training.errors import Erased, WrongState
from training.models import Checkpoint, Dataset, Episode, MergeSource, MixedDataset, Run
from training.runs import workdir
from training.runs.rundir import RunDir
from training.weights import checkpoints

pytestmark = pytest.mark.django_db


def store():
    return open_store(settings.STORAGE_URL)


def shows(session: Session, *names: str) -> list[str]:
    """Give the session's steps pictures of their own, one name each."""
    shas = [store().put(f"png {name}".encode()) for name in names]
    for step, sha in zip(session.steps.order_by("index"), shas, strict=False):
        step.screenshot, step.observation = sha, observation(screenshot=sha)
        step.save()
    return shas


def freeze(name: str, pool="sft", **filters) -> Dataset:
    return datasets.freeze(name=name, pool=pool, filters=Filters(**filters), by=None)


def erased(model) -> set[str]:
    rows = model.objects.exclude(erased_at=None)
    return {row.version if model is Checkpoint else row.name for row in rows}


@pytest.fixture
def person(annotator):
    """Somebody with a pseudonym and one session with everything that can hang on one."""
    name = pseudonyms.of(annotator)
    session = make_session(task="a/1", author=annotator, pseudonym=name)
    step = session.steps.first()
    point = DecisionPoint.objects.create(session=session, index=0, status="decided")
    proposal = Proposal.objects.create(decision_point=point, rank=1)
    Decision.objects.create(step=step, decision_point=point, proposal=proposal, kind="accepted")
    computer = Sandbox.objects.create()
    lease = Lease.objects.create(
        sandbox=computer, owner=annotator, epoch=1, expires_at=timezone.now(),
        hard_expires_at=timezone.now(),
    )  # fmt: skip
    InputEvent.objects.create(lease=lease, seq=1, at=0.0, kind="key", keysym=112)
    Skip.objects.create(task=session.task, user=annotator, reason="dull")
    return annotator


def test_rows_go_with_all_that_hangs_on_them_and_nobody_else_loses_any(person):
    other = make_session(task="a/1", pseudonym="B-1")
    found = erasure.erase(person, by=None)
    assert found.counts | {"pictures": 0} == {
        "sessions": 1, "steps": 2, "proposals": 1, "decisions": 1, "inputs of the hand": 1,
        "recordings": 0, "pictures": 0,
    }  # fmt: skip
    assert list(Session.objects.all()) == [other]
    for model in (Decision, DecisionPoint, Proposal, InputEvent, Skip, Pseudonym):
        assert not model.objects.exists(), model
    assert Step.objects.count() == 2
    assert Task.objects.get().state == "done"  # the other's session is enough
    with pytest.raises(erasure.NothingFound, match="nothing of"):
        erasure.erase(person, by=None)


def test_a_task_is_offered_again_when_too_few_sessions_are_left(person):
    erasure.erase(person, by=None)
    assert Task.objects.get().state == "open"


def test_pictures_go_unless_somebody_else_or_an_episode_shows_them(person):
    own = shows(Session.objects.get(), "own", "shared")
    make = make_session(task="b/1", pseudonym="B-1")
    (shared,) = shows(make, "shared")
    session = make_session(task="a/2", author=person)
    (played,) = shows(session, "played")
    record = f'{{"steps": [{{"observation": {{"screenshot": "{played}"}}}}]}}'.encode()
    Episode.objects.create(
        rollout=rollout(), family="toys", task="n1", seed=0, state="done",
        trajectory=pictures.store().put(record),
    )  # fmt: skip
    assert erasure.erase(person, by=None).counts["sessions"] == 2
    assert not store().exists(own[0])
    assert store().exists(shared)
    assert store().exists(played)


def test_datasets_and_every_checkpoint_made_of_them_are_marked(person):
    make_session(task="b/1", pseudonym="B-1")
    both, clean = freeze("both"), freeze("clean", task="b/")
    box = checkpoint("box")
    first = train("first", box, dataset=both)
    safe = train("safe", box, dataset=clean)
    mixed = train("mixed", box, dataset=clean)
    MixedDataset.objects.create(run=mixed.run, dataset=both, weight=0.1)
    grown = train("grown", first, dataset=clean)
    critic = train("critic", first, kind="value")
    advised = train("advised", safe, kind="ppo", critic=critic)
    merged = train("merged", None, kind="merge")
    for source in (safe, grown):
        MergeSource.objects.create(run=merged.run, checkpoint=source, weight=0.5)
    partner = Deployment.objects.create(name="partner", version=grown.version)

    seen = erasure.trace(person)
    assert erased(Dataset) == erased(Checkpoint) == set()
    found = erasure.erase(person, by=None)
    marked = {first, mixed, grown, critic, advised, merged}
    assert set(found.checkpoints) == set(seen.checkpoints) == marked
    assert erased(Checkpoint) == {one.version for one in marked}
    assert erased(Dataset) == {"both"}
    assert found.deployments == (partner,)
    assert not store().list_keys(datasets.key_of(both))
    with pytest.raises(Erased, match="both"):
        list(datasets.trajectories(both))
    assert [entry.session_id is None for entry in both.entries.order_by("line")] == [True, False]
    assert [len(list(datasets.trajectories(clean)))] == [1]
    fresh = datasets.refreeze(both, by=None)
    assert (fresh.name, fresh.trajectories) == ("both-2", 1)


def test_what_learnt_from_episodes_of_a_marked_checkpoint_is_marked_too(person):
    box = checkpoint("box")
    first = train("first", box, dataset=freeze("data"))
    collected, clean = rollout("collected"), rollout("clean")
    play(collected, versions=["box", first.version])
    play(clean, versions=["box"], seed=1)
    taught = freeze("taught", source="episodes", rollouts=("collected",))
    safe = train("safe", box, dataset=freeze("other", source="episodes", rollouts=("clean",)))
    second = train("second", box, dataset=taught)
    critic = train("critic", box, kind="value", rollout=collected)
    # What an RL run plays between two of its checkpoints is played by its weights all the same.
    streamed = rollout("rl-streamed", purpose="train")
    strong = train("streamed", second, kind="ppo", rollout=streamed)
    play(streamed, versions=["streamed-step-7"], seed=2)
    judge = train("judge", box, kind="orm", rollout=streamed)

    found = erasure.erase(person, by=None)
    assert set(found.checkpoints) == {first, second, critic, strong, judge}
    assert erased(Checkpoint) == {one.version for one in found.checkpoints}
    assert safe.version not in erased(Checkpoint)
    assert erased(Dataset) == {"data"}  # episodes are nobody's


def test_a_session_that_was_left_out_is_forgotten_there_too(person):
    make_session(task="b/1", pseudonym="B-1", reward=0.0)
    low = freeze("low", "ct")
    assert low.left_out[0]["session"] == Session.objects.get(author=person).pk
    erasure.erase(person, by=None)
    low.refresh_from_db()
    assert low.erased_at is None
    assert [set(one) for one in low.left_out] == [{"reason"}]


@pytest.fixture
def name(person) -> str:
    return Pseudonym.objects.get(user=person).name


def test_runs_that_learn_from_it_are_cancelled_and_what_they_still_make_is_marked(name):
    data = freeze("data")
    run = Run.objects.create(name="r", dataset=data, base=checkpoint("box"), state="running")
    erasure.erase(name, by=None)
    run.refresh_from_db()
    assert run.state == "cancelling"
    assert name in erasure.unfinished()
    late = checkpoints.marked(checkpoint("late", run=run, step=1), run)
    assert late.erased_at is not None


def test_the_folder_of_a_run_loses_its_rows_as_soon_as_the_run_has_ended(name, tmp_path, settings):
    settings.RUNS_DIR = tmp_path
    data = freeze("data")
    run = Run.objects.create(name="r", dataset=data, base=checkpoint("box"), state="cancelling")
    directory = workdir.directory_of(run)
    RunDir.create(directory, config={}, lines=["{}\n"])
    (directory / "blobs" / "ab").mkdir(parents=True)
    erasure.erase(name, by=None)
    assert (directory / "data.jsonl").exists()
    assert name in erasure.unfinished()
    Run.objects.update(state="cancelled")
    found = erasure.erase(name, by=None)
    assert found.unfinished
    assert not (directory / "data.jsonl").exists()
    assert not (directory / "blobs").exists()
    assert (directory / "config.yaml").exists()
    assert name not in erasure.unfinished()


def test_killed_before_the_files_are_gone_it_finishes_when_done_again(name, monkeypatch):
    (own, *_) = shows(Session.objects.get(), "own")
    data = freeze("data")
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "finish", _die)
        with pytest.raises(StoreUnreachable):
            erasure.erase(name, by=None)
    assert not Session.objects.exists()
    assert store().exists(own)
    assert erasure.trace(name).unfinished
    found = erasure.erase(name, by=None)
    assert found.unfinished
    assert not store().exists(own)
    assert not store().list_keys(datasets.key_of(data))
    with pytest.raises(erasure.NothingFound):
        erasure.erase(name, by=None)


def _die(name):
    raise StoreUnreachable("no answer")


def test_killed_within_the_rows_it_changes_nothing_and_no_file_goes(name, monkeypatch):
    (own, *_) = shows(Session.objects.get(), "own")
    data = freeze("data")
    with monkeypatch.context() as patch:
        patch.setattr(erasure.annotated, "delete", lambda *_: _die(""))
        with pytest.raises(StoreUnreachable):
            erasure.erase(name, by=None)
    assert erased(Dataset) == set()
    erasure.finish(name)  # what is written down is looked at again: all of it is still in use
    assert store().exists(own)
    assert len(list(datasets.trajectories(data))) == 1


def test_the_file_of_a_freeze_that_was_killed_goes_too(name, monkeypatch):
    line = (
        b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}'
    )
    kept = datasets.import_general(name="kept", file="talk.jsonl", lines=[line], by=None)
    before = set(store().list_keys("datasets/"))
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "save", lambda _: _die(""))
        with pytest.raises(StoreUnreachable):
            freeze("killed")
    (left,) = set(store().list_keys("datasets/")) - before
    erasure.erase(name, by=None)
    found = store().list_keys("datasets/")
    assert left not in found and datasets.key_of(kept) in found


def test_a_session_that_is_going_on_has_to_end_first(person):
    later = timezone.now() + dt.timedelta(hours=1)
    live = Session.objects.create(
        task=Task.objects.get(), author=person, status="active", expires_at=later
    )
    assert erasure.trace(person).live == (live.pk,)
    with pytest.raises(StillGoingOn, match=f"session {live.pk}"):
        erasure.erase(person, by=None)
    assert Session.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_dataset_that_is_frozen_while_a_session_goes_keeps_nothing_of_it(person, monkeypatch):
    make_session(task="b/1", pseudonym="B-1")
    keep, before = datasets._keep, store().list_keys("datasets/")

    def meanwhile(**values):
        Session.objects.filter(author=person).delete()
        return keep(**values)

    monkeypatch.setattr(datasets, "_keep", meanwhile)
    with pytest.raises(WrongState, match="freeze again"):
        freeze("data")
    assert not Dataset.objects.exists()
    assert store().list_keys("datasets/") == before


def test_it_takes_as_many_queries_for_many_sessions_as_for_one(name, django_assert_max_num_queries):
    with CaptureQueriesContext(connection) as one:
        erasure.trace(name)
    for n in range(10):
        make_session(task=f"c/{n}", pseudonym=name)
    with django_assert_max_num_queries(len(one) + 1):
        assert erasure.trace(name).counts["sessions"] == 11


# -- the page and the command ------------------------------------------------------------------------


def test_the_page_shows_first_and_deletes_only_once_the_name_is_typed(
    client, admin_user, name, caplog
):
    address = reverse("training:erase")
    assert client.get(address).status_code == 302
    client.force_login(admin_user)
    freeze("data")
    nobody = client.get(address, {"who": "nobody"}).content.decode()
    assert "There is nothing of nobody here" in nobody
    page = client.get(address, {"who": "annotator"}).content.decode()
    assert f"What there is of {name}" in page
    assert "data</a>" in page
    wrong = client.post(address, {"who": name, "confirm": "p-other"}).content.decode()
    assert "nothing was deleted" in wrong
    assert Session.objects.exists()
    with caplog.at_level(logging.WARNING, logger="training.erasure"):
        done = client.post(address, {"who": name, "confirm": name}).content.decode()
    assert f"Deleted the data of {name}" in done
    assert not Session.objects.exists()
    assert admin_user.username in caplog.text


def test_only_staff_may_delete(client, reviewer, name):
    client.force_login(reviewer)
    answer = client.post(reverse("training:erase"), {"who": name, "confirm": name})
    assert answer.status_code == 403
    assert Session.objects.exists()


def test_the_command_shows_and_deletes_with_yes(name, capsys):
    freeze("data")
    call_command("erase", name)
    shown = capsys.readouterr().out
    assert "1 sessions" in shown
    assert "datasets: data" in shown
    assert "nothing was deleted" in shown
    assert Session.objects.exists()
    call_command("erase", name, "--yes")
    assert not Session.objects.exists()
    with pytest.raises(CommandError, match="nothing of"):
        call_command("erase", name, "--yes")
