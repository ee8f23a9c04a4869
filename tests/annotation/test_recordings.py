"""From the last byte to training data and back: stages, reviewers, Session, D_CT, and withdrawal."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import wave
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agent import speech
from agent.models import Deployment
from agent.speech import SpeechUnreachable, Word, whisper
from annotation import access
from annotation.data.reviews import trajectory_of
from annotation.errors import BadInput, NotYours, Refused
from annotation.models import Recording, RecordingReview, Session, Task
from annotation.recordings import progress, refinement, reviewing, rewording
from annotation.recordings.reviewing import Fix
from annotation.session import pictures
from tests.annotation.recorded import (
    Recorded,
    Sender,
    accept,
    arrived,
    click,
    lines,
    sha,
    signed_in,
)
from tests.annotation.test_recordings_upload import token_of
from training.data import datasets
from training.data.selection import Filters
from trajectory import Actor, Click, Type
from trajectory.recording import AudioWritten, ClockRead, Moved, to_line


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


class Said:
    """A model that answers what it is told to."""

    def __init__(self, text: str) -> None:
        self.text, self.asked = text, []

    def say(self, messages: Any) -> Any:
        from agent.rewards.chat import Said as Answer

        self.asked.append(messages[0]["content"])
        return Answer(self.text, "model-7")


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


def heard(recorded: Recorded) -> Recorded:
    recorded.files["audio/0001.flac"] = b"fLaC" + recorded.name.encode()
    event = to_line(AudioWritten(2.0, "0001.flac", 16_000)) + "\n"
    lines_ = recorded.files["events.jsonl"].decode().splitlines(keepends=True)
    recorded.files["events.jsonl"] = "".join([*lines_[:2], event, *lines_[2:]]).encode()
    return recorded


def test_sound_is_heard_on_the_recorders_clock_and_tried_again_when_the_engine_was_away(
    sender: Sender, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ear:
        name = "ear-1"
        away = True

        def transcribe(self, sound: Any) -> list[Word]:
            if self.away:
                raise SpeechUnreachable("not now")
            return [Word("click", 0.1, 0.4, 0.9), Word("save", 0.5, 0.8, 0.7)]

    ear = Ear()
    monkeypatch.setattr(speech, "load", lambda *_, **__: ear)
    row = arrived(sender, queue, heard(Recorded(words=False)))
    assert row.status == "transcribing" and "not now" in row.cause and row.attempts == 1
    ear.away = False
    Recording.objects.update(worker_at=timezone.now() - 2 * progress.WORKER_SILENT)
    progress.reap()
    queue.run()
    row.refresh_from_db()
    said = row.utterances.get()
    assert (row.status, row.attempts) == ("in_review", 0)
    assert (said.text, said.by, said.began) == ("click save", "ear-1", pytest.approx(2.1))
    assert said.step == row.steps.first()


def test_thoughts_that_a_person_added_stand_beside_what_is_heard(
    sender: Sender, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ear:
        name = "ear-1"

        def transcribe(self, sound: Any) -> list[Word]:
            return [Word("click", 0.1, 0.4, 0.9), Word("save", 0.5, 0.8, 0.7)]

    monkeypatch.setattr(speech, "load", lambda *_, **__: Ear())
    recorded = heard(Recorded())
    added = {"began": 4.6, "ended": 5.1, "text": "Then I type budget.", "by": "person"}
    recorded.files["words.jsonl"] = lines([added])
    row = arrived(sender, queue, recorded)
    found = list(row.utterances.order_by("index").values_list("text", "by"))
    assert found == [("click save", "ear-1"), ("Then I type budget.", "person")]
    assert [step.provenance for step in row.steps.all()] == ["spoken", "typed"]


def test_a_made_voice_is_heard_aligned_and_waits_for_its_reviewers(
    sender: Sender, queue: Any, tmp_path: Path
) -> None:
    if not (shutil.which("espeak-ng") and whisper.has_packaged()):
        pytest.skip("needs espeak-ng and the extra speech: faster-whisper and its packaged model")
    av = pytest.importorskip("av", reason="FFmpeg's libraries: pip install 'tandem[speech]'")
    wav = tmp_path / "said.wav"
    subprocess.run(
        ["espeak-ng", "-v", "en-us", "-w", wav, "Now I click the save button."], check=True
    )
    recorded = heard(Recorded(words=False))
    with wave.open(str(wav)) as file:
        rate, pcm = file.getframerate(), file.readframes(file.getnframes())
    flac = tmp_path / "0001.flac"
    with av.open(str(flac), "w") as container:
        stream = container.add_stream("flac", rate=rate, layout="mono")
        frame = av.AudioFrame(format="s16", layout="mono", samples=len(pcm) // 2)
        frame.planes[0].update(pcm)
        frame.rate = rate
        container.mux([*stream.encode(frame), *stream.encode(None)])
    recorded.files["audio/0001.flac"] = flac.read_bytes()
    row = arrived(sender, queue, recorded)
    assert (row.status, row.cause) == ("in_review", "")
    assert "click" in row.steps.first().thought and row.steps.first().provenance == "spoken"
    assert row.utterances.first().by == "whisper:whisper-base"


def test_no_engine_keeps_the_recording_and_says_what_to_do(
    sender: Sender, queue: Any, settings: Any, stranger: Any
) -> None:
    settings.SPEECH_URL = "whisper:///nowhere"
    recorded = heard(Recorded(words=False))
    row = arrived(sender, queue, recorded)
    assert row.status == "failed" and "model.bin" in row.cause
    # With what it lacked in place, trying again goes on from there.
    row.files.filter(path__startswith="audio/").delete()
    signed_in(stranger).post(f"/recordings/{row.name}/retry/")
    queue.run()
    row.refresh_from_db()
    assert row.status == "in_review"


def test_jobs_run_twice_or_for_nothing(sender: Sender, queue: Any) -> None:
    row = arrived(sender, queue)
    before = list(row.steps.values_list("pk", "thought"))
    for stage in progress.STAGES.values():
        stage(row)  # a second worker that took its time
    progress.advance(row.pk)
    progress.advance(10**9)
    assert list(row.steps.values_list("pk", "thought")) == before


def test_refined_words_keep_what_was_said_and_invented_ones_are_not_taken(
    sender: Sender, queue: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Deployment.objects.create(
        name="refiner", kind="openai", base_url="http://127.0.0.1:9", model="m"
    )
    settings.RECORDING_REFINER = "refiner"
    model = Said("I want to save it, so I click Save.")
    monkeypatch.setattr(refinement.deployments, "chat", lambda *_, **__: model)
    row = arrived(sender, queue)
    first = row.steps.first()
    assert (first.thought, first.provenance, first.model_version) == (
        model.text,
        "refined",
        "model-7",
    )
    assert row.utterances.first().text == "I click save" and "I click save" in model.asked[0]
    model.text = "Because of many reasons that nobody gave. " * 20
    other = Recorded()
    other.steps[0]["action"] = click(31, 41)
    other.files["steps.jsonl"] = lines(other.steps)
    row = arrived(sender, queue, other)
    assert row.steps.first().provenance == "spoken"


def test_rewordings_stay_apart_from_originals(
    sender: Sender, queue: Any, settings: Any, reviewer: Any, admin_user: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    row = accept(arrived(sender, queue), reviewer, admin_user)
    assert rewording.reword(row.pk) == 0
    Deployment.objects.create(
        name="refiner", kind="openai", base_url="http://127.0.0.1:9", model="m"
    )
    settings.RECORDING_REFINER = "refiner"
    monkeypatch.setattr(rewording.deployments, "chat", lambda *_, **__: Said("In other words."))
    assert (rewording.reword(row.pk), rewording.reword(row.pk)) == (2, 0)
    assert "In other words." not in str(trajectory_of(row.session))


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
