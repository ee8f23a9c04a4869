"""From the last byte to training data and back: stages, reviewers, Session, D_CT, and withdrawal."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from annotation import access
from annotation.data.reviews import trajectory_of
from annotation.errors import BadInput, NotYours, Refused
from annotation.models import Recording, RecordingReview, Session, Task
from annotation.recordings import progress, reviewing
from annotation.recordings.reviewing import Fix
from annotation.session import pictures
from tests.annotation.recorded import (
    Recorded,
    Sender,
    accept,
    arrived,
    click,
    heard,
    lines,
    sha,
    signed_in,
)
from tests.annotation.test_recordings_upload import token_of
from training.data import datasets
from training.data.selection import Filters
from trajectory import Actor, Click, Type
from trajectory.recording import ClockRead, Moved, to_line


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


def test_a_recording_becomes_a_session_that_ct_learns_from(
    sender: Sender, queue: Any, stranger: Any, reviewer: Any, admin_user: Any
) -> None:
    row = arrived(sender, queue)
    assert (row.status, row.cause) == ("in_review", "")
    first, second = row.steps.all()
    assert (first.thought, second.thought) == ("I click save", "then type budget")
    assert {first.provenance, second.provenance} == {"spoken"}
    row = accept(row, reviewer, admin_user)
    assert row.status == Recording.Status.ACCEPTED
    found = trajectory_of(Session.objects.get(recording=row))
    assert [type(step.action) for step in found.steps] == [Click, Type]
    assert {step.actor for step in found.steps} == {Actor.HUMAN}
    assert found.source == "in_situ" and found.annotator.startswith("p-")
    assert found.metadata["thoughts"] == "spoken spoken"
    assert found.steps[0].observation.elements[0].name == "Save"
    frozen = datasets.freeze(name="ct-1", pool="ct", filters=Filters(), by=None)
    (again,) = datasets.trajectories(frozen)
    assert again == found
    with pytest.raises(Exception, match="SFT"):
        datasets.freeze(name="sft-1", pool="sft", filters=Filters(), by=None)
    # The workbench's queue knows nothing of it.
    assert Task.objects.get().state == Task.State.RETIRED


def test_two_different_reviewers_and_never_its_contributor(
    sender: Sender, queue: Any, stranger: Any, reviewer: Any, admin_user: Any
) -> None:
    row = arrived(sender, queue)
    with pytest.raises(NotYours):
        reviewing.judge(row, reviewer=stranger, verdict="accepted")
    row = accept(row, reviewer)
    assert row.status == Recording.Status.IN_REVIEW
    with pytest.raises(Refused, match="judged"):
        accept(row, reviewer)
    assert not access.recordings_to_judge(reviewer).exists()
    assert access.recordings_to_judge(admin_user).get() == row
    assert accept(row, admin_user).session is not None


def test_a_returned_recording_comes_back_corrected(
    sender: Sender, queue: Any, stranger: Any, reviewer: Any, admin_user: Any
) -> None:
    row = arrived(sender, queue)
    with pytest.raises(BadInput, match="reasons"):
        reviewing.judge(row, reviewer=reviewer, verdict="returned")
    reviewing.judge(row, reviewer=reviewer, verdict="returned", reasons="say more about step 2")
    page = signed_in(stranger)
    assert b"say more about step 2" in page.get(f"/recordings/{row.name}/").content
    page.post(f"/recordings/{row.name}/thoughts/", {"thought-1": "I type the budget's name."})
    row.refresh_from_db()
    step = row.steps.get(index=1)
    assert (row.status, row.round) == ("in_review", 2)
    assert (step.thought, step.provenance) == ("I type the budget's name.", "typed")
    # What was heard stays beside it.
    assert row.utterances.get(step=step).text == "then type budget"
    assert accept(row, reviewer, admin_user).status == "accepted"


def test_reviewers_fix_and_leave_out(
    sender: Sender, queue: Any, reviewer: Any, admin_user: Any
) -> None:
    row = arrived(sender, queue)
    with pytest.raises(BadInput, match="outside"):
        reviewing.judge(
            row, reviewer=reviewer, verdict="accepted", fixes=[Fix(0, action=click(9999, 1))]
        )
    browser = signed_in(reviewer)
    assert browser.get(f"/recordings/{row.name}/review/").status_code == 200
    form = {"verdict": "accepted", "command-0": "click(50, 40)", "kept-1": "0"}
    browser.post(f"/recordings/{row.name}/review/", form)
    row = accept(row, admin_user)
    (step,) = trajectory_of(row.session).steps
    assert step.action == Click(50, 40)
    assert RecordingReview.objects.filter(reviewer=reviewer).get().fixes != []


def test_what_cannot_be_done_again_is_named_and_left_out(sender: Sender, queue: Any) -> None:
    recorded = Recorded()
    recorded.steps[0]["action"] = click(500, 40)
    recorded.steps.append(
        {**recorded.steps[1], "began": 8.0, "ended": 8.1, "action": {"type": "dance"}}
    )
    recorded.steps.append({**recorded.steps[1], "began": 8.5, "ended": 8.6, "frame": ""})
    beside = {"role": "link", "name": "Far", "bounds": [200, 100, 10, 10]}
    recorded.steps.append(
        {**recorded.steps[1], "began": 8.8, "ended": 8.9, "action": click(1, 1), "element": beside}
    )
    recorded.files["steps.jsonl"] = lines(recorded.steps)
    row = arrived(sender, queue, recorded)
    problems = list(row.steps.values_list("problem", "kept"))
    assert [kept for _, kept in problems] == [False, True, False, False, False]
    for at, word in ((0, "outside"), (2, "dance"), (3, "picture"), (4, "Far")):
        assert word in problems[at][0]


def test_the_same_actions_for_the_same_task_are_a_duplicate(sender: Sender, queue: Any) -> None:
    first = arrived(sender, queue)
    second = arrived(sender, queue)
    assert (first.status, second.status) == ("in_review", "rejected")
    assert str(first) in second.cause


BROKEN_EVENTS = [
    (b"not json\n", "line 1"),
    (b'{"kind":"danced","t":1.0}\n', "line 1"),
    ((to_line(Moved(1, 2, 3)) + "\n" + to_line(Moved(1, 2, 3)).replace('"x":2', '"x":"2"')).encode(), "line 2"),
    ("".join(to_line(Moved(t, 1, 1)) + "\n" for t in (1.0, 50.0, 3.0)).encode(), "jumps back"),
    ("".join(to_line(Moved(t, 1, 1)) + "\n" for t in (1.0, 9000.0)).encode(), "without a pause"),
    (to_line(ClockRead(-1.0, 5.0)).encode(), "begins at 0"),
    (b"", "no event"),
    (b"\xff\xfe\n", "UTF-8"),
    (b'{"kind":[],"t":1.0}\n', "known kind"),
    (b'{"kind":"moved","t":NaN,"x":1,"y":1}', "t is nan"),
    (b'{"kind":"moved","t":-Infinity,"x":1,"y":1}', "t is -inf"),
    (b'{"kind":"moved","t":1e400,"x":1,"y":1}', "t is inf"),
    (b'{"kind":"moved","t":' + b"9" * 5000 + b',"x":1,"y":1}', "no JSON"),
    (b'{"kind":"moved","t":4e9,"x":1,"y":1}', "at most a day"),
    (b'{"kind":"clock","t":1.0,"wall":NaN}', "wall is nan"),
    (b'{"kind":"moved","t":1.0,"x":"' + b"9" * 900_000 + b'","y":1}', "x is '999"),
    (b'{"kind":"committed","t":1.0,"text":"' + b"a" * (1 << 20) + b'"}', "longer than"),
    (b"[" * 100_000, "line 1"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "named"), BROKEN_EVENTS)
def test_events_that_are_none_fail_with_their_line_and_are_kept(
    sender: Sender, queue: Any, data: bytes, named: str
) -> None:
    recorded = Recorded()
    recorded.files["events.jsonl"] = data
    row = arrived(sender, queue, recorded)
    assert row.status == Recording.Status.FAILED
    assert named in row.cause and "events.jsonl" in row.cause
    assert len(row.cause) < 500  # what it quotes of the file is cut
    assert pictures.store().get(sha(data)) == data
    assert sender.get(f"/api/recordings/{row.name}").json()["cause"] == row.cause


def test_a_frame_that_is_no_picture_or_not_there_fails(sender: Sender, queue: Any) -> None:
    for data in (b"no png", None):
        recorded = Recorded()
        frame = sha(data) if data else "a" * 64
        recorded.steps[0]["frame"] = frame
        recorded.files["steps.jsonl"] = lines(recorded.steps)
        if data:
            recorded.files[f"frames/{frame}.png"] = data
        row = arrived(sender, queue, recorded)
        assert row.status == "failed" and frame[:12] in row.cause


def test_jobs_run_twice_or_for_nothing(sender: Sender, queue: Any) -> None:
    row = arrived(sender, queue)
    before = list(row.steps.values_list("pk", "thought"))
    for stage in progress.STAGES.values():
        stage(row)  # a second worker that took its time
    progress.advance(row.pk)
    progress.advance(10**9)
    assert list(row.steps.values_list("pk", "thought")) == before


def test_the_pages_are_their_contributors_and_their_reviewers(
    sender: Sender, queue: Any, stranger: Any, annotator: Any, reviewer: Any
) -> None:
    recorded = heard(Recorded())
    row = arrived(sender, queue, recorded)
    sound = f"/recordings/{row.name}/sound/{sha(recorded.files['audio/0001.flac'])}/"
    frame = f"/blobs/{recorded.steps[0]['frame']}.png"
    mine, theirs, judge = signed_in(stranger), signed_in(annotator), signed_in(reviewer)
    for url in (
        "/recordings/",
        f"/recordings/{row.name}/",
        f"/recordings/{row.name}/download/",
        sound,
        frame,
    ):
        assert mine.get(url).status_code == 200, url
    for url in (f"/recordings/{row.name}/", f"/recordings/{row.name}/download/", sound, frame,
                f"/recordings/{row.name}/review/"):  # fmt: skip
        assert theirs.get(url).status_code == 404, url
    assert theirs.get("/recordings/review/").status_code == 403
    for url in ("/recordings/review/", f"/recordings/{row.name}/review/", sound, frame):
        assert judge.get(url).status_code == 200, url
    assert judge.get(f"/recordings/{row.name}/download/").status_code == 404
    assert theirs.post(f"/recordings/{row.name}/withdraw/").status_code == 404
    body = b"".join(mine.get(f"/recordings/{row.name}/download/").streaming_content)
    archive = zipfile.ZipFile(io.BytesIO(body))
    assert set(recorded.files) | {"tandem.json"} == set(archive.namelist())
    assert json.loads(archive.read("tandem.json"))["steps"][0]["thought"] == "I click save"


def test_tasks_for_recorders_are_offered_to_recorders_alone(
    sender: Sender, queue: Any, annotator: Any
) -> None:
    from annotation.tasks import tasks

    task = Task.objects.create(
        external_id="crm-1", instruction="Add a customer.", recorded_as="exploration", needed=2
    )
    assert not tasks.offered(annotator).exists()
    offered = sender.post("/api/recorder/tasks/next").json()
    assert (offered["id"], offered["kind"]) == ("crm-1", "exploration")
    recorded = Recorded()
    recorded.about["task"]["id"] = "crm-1"
    row = arrived(sender, queue, recorded)
    assert row.task == task
    assert sender.get("/api/recorder/tasks").json() == []
    assert sender.post("/api/recorder/tasks/next").status_code == 404
    assert Sender(token_of(annotator)).get("/api/recorder/tasks").json()[0]["id"] == "crm-1"
