"""What is heard in a recording, put in order by a model, and said in other words."""

from __future__ import annotations

import shutil
import subprocess
import wave
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agent import speech
from agent.models import Deployment
from agent.speech import SpeechUnreachable, Word, whisper
from annotation.data.reviews import trajectory_of
from annotation.models import Recording
from annotation.recordings import progress, refinement, rewording
from tests.annotation.recorded import (
    Recorded,
    Sender,
    accept,
    arrived,
    click,
    heard,
    lines,
    signed_in,
)
from tests.annotation.test_recordings_upload import token_of


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
