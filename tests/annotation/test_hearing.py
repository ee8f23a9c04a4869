"""Hours of sound: heard in stretches, none twice, with a percentage that grows."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path
from typing import Any

import pytest
import soundfile
from django.utils import timezone

from agent import speech
from agent.speech import Word
from annotation.models import Hearing, Recording
from annotation.recordings import progress, rights
from annotation.recordings.stretches import LONGEST_S, stretches
from tests.annotation.recorded import Recorded, Sender, signed_in
from tests.annotation.test_recordings_upload import token_of
from trajectory.recording import AudioWritten, to_line

RATE = 16_000
pytest.importorskip("av", reason="FFmpeg's libraries: pip install 'tandem[speech]'")


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


def sound(number: int, t: float, seconds: float = 1.0, *, silent: bool = False) -> AudioWritten:
    return AudioWritten(t, f"{number:05d}.flac", int(seconds * RATE), RATE, silent)


def flac(event: AudioWritten, loud: int) -> bytes:
    out = io.BytesIO()
    with soundfile.SoundFile(out, "w", RATE, 1, "PCM_16", format="FLAC") as file:
        file.buffer_write(loud.to_bytes(2, "little") * event.samples, "int16")
    return out.getvalue()


def spoken(*sounds: AudioWritten) -> Recorded:
    recorded = Recorded(words=False)
    events = recorded.files["events.jsonl"].decode().splitlines()
    events += [to_line(event) for event in sounds]
    events.sort(key=lambda line: json.loads(line)["t"])
    recorded.files["events.jsonl"] = "\n".join([*events, ""]).encode()
    for number, event in enumerate(sounds, 1):
        recorded.files[f"audio/{event.name}"] = flac(event, number)
    return recorded


class Ear:
    """Hears a word at half a second of every sound; is killed at the sounds in `deadly`."""

    name = "ear"

    def __init__(self) -> None:
        self.heard: list[tuple[str, float]] = []
        self.deadly: set[str] = set()

    def transcribe(self, path: Path) -> list[Word]:
        if path.stem in self.deadly:
            raise SystemExit
        if path.suffix == ".wav":
            with wave.open(str(path)) as file:
                long = file.getnframes() / file.getframerate()
        else:
            long = soundfile.info(path).duration
        self.heard.append((path.stem, long))
        return [Word(f"word{at}", at + 0.5, at + 0.9, 0.8) for at in range(int(long))]


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Ear:
    made = Ear()
    monkeypatch.setattr(speech, "load", lambda *_, **__: made)
    return made


def test_pieces_without_a_gap_are_heard_as_one_and_silence_not_at_all() -> None:
    found = stretches(
        [
            sound(3, 31.0, 10),
            sound(1, 10.0, 10),
            sound(0, 0.0, 10),
            sound(2, 20.01, 10, silent=True),
        ]
    )
    assert [[one.t for one in stretch.sounds] for stretch in found] == [[0.0, 10.0], [31.0]]
    words = [Word("a", 1.0, 2.0, 1.0), Word("b", 11.0, 12.0, 1.0)]
    moved = stretches([sound(0, 5.0, 10), sound(1, 15.2, 10)])[0].placed(words, [0.0, 10.0])
    assert [(w.began, w.ended) for w in moved] == [(6.0, 7.0), (16.2, 17.2)]
    day = stretches(sound(n, n * 10.0, 10) for n in range(720))
    assert sum(one.seconds for one in day) == 7200
    assert all(one.seconds <= LONGEST_S for one in day)
    alone = stretches((sound(n, n * 10.0, 10) for n in range(3)), longest_s=0.0)
    assert [len(one.sounds) for one in alone] == [1, 1, 1]


def test_a_worker_goes_on_where_a_killed_one_was(
    sender: Sender, queue: Any, ear: Ear, stranger: Any
) -> None:
    ear.deadly = {"00004"}
    recorded = spoken(
        sound(0, 1.0), sound(1, 2.0), sound(2, 3.0, silent=True), sound(3, 5.0), sound(4, 7.0)
    )
    assert sender.send(recorded).status_code == 202
    with pytest.raises(SystemExit):
        queue.run()
    row = Recording.objects.get()
    assert (row.status, row.heard) == ("transcribing", 75)
    watched = signed_in(stranger).get(f"/recordings/{row.name}/", headers={"HX-Request": "true"})
    assert "75 %" in watched.content.decode() and "every 3s" in watched.content.decode()
    assert "HX-Refresh" not in watched
    assert sender.get(f"/api/recordings/{row.name}").json()["heard"] == 75
    assert ear.heard == [("00000", 2.0), ("00003", 1.0)]
    ear.deadly, ear.heard = set(), []
    Recording.objects.update(worker_at=timezone.now() - 2 * progress.WORKER_SILENT)
    progress.reap()
    queue.run()
    row.refresh_from_db()
    assert row.status == "in_review" and ear.heard == [("00004", 1.0)]
    words = [word for one in row.utterances.all() for word in one.words]
    assert [w[1] for w in words] == pytest.approx([1.5, 2.5, 5.5, 7.5])
    assert not Hearing.objects.exists()
    watched = signed_in(stranger).get(f"/recordings/{row.name}/", headers={"HX-Request": "true"})
    assert watched["HX-Refresh"] == "true" and "every 3s" not in watched.content.decode()


def test_a_withdrawn_recording_is_listened_to_no_longer(
    sender: Sender, queue: Any, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear = ear.transcribe

    def withdrawn(path: Path) -> list[Word]:
        rights.withdraw(Recording.objects.get())
        return hear(path)

    monkeypatch.setattr(ear, "transcribe", withdrawn)
    assert sender.send(spoken(sound(0, 1.0), sound(1, 5.0))).status_code == 202
    queue.run()
    assert len(ear.heard) == 1 and not Hearing.objects.exists()
    assert Recording.objects.get().status == "withdrawn"
