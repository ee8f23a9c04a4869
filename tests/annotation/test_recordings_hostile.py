"""Recorders that name what is not theirs, and recordings made to break whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from annotation import jobs
from annotation.models import Recording
from annotation.recordings import content, progress, rights, spool
from annotation.recordings.errors import BadContent
from annotation.session import pictures
from tests.annotation.recorded import Recorded, Sender, arrived, click, lines, sha, signed_in
from tests.annotation.test_recordings_upload import token_of
from training import erasure
from trajectory.recording import AudioWritten, to_line


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


def test_a_picture_that_was_only_announced_is_not_shown(
    sender: Sender, queue: Any, stranger: Any, annotator: Any
) -> None:
    theirs, mine = Recorded(), Recorded()
    arrived(Sender(token_of(annotator)), queue, theirs)
    path = next(path for path in theirs.files if path.startswith("frames/"))
    mine.files[path] = theirs.files[path]
    assert sender.post("/api/recordings/", mine.manifest()).status_code == 201
    url = f"/blobs/{sha(theirs.files[path])}.png"
    assert signed_in(stranger).get(url).status_code == 404
    digest = sha(theirs.files[path])
    assert sender.patch(mine, digest, 0, theirs.files[path]).status_code == 204
    assert signed_in(stranger).get(url).status_code == 200


@pytest.mark.parametrize("way", ["withdrawn", "erased"])
def test_a_blob_that_was_only_announced_is_not_deleted(
    sender: Sender, stranger: Any, way: str
) -> None:
    mine = Recorded()
    episode = b"a trajectory that nobody gave " + mine.name.encode()
    mine.files["audio/x.flac"] = episode
    pictures.store().put(episode)
    own = sha(mine.files["events.jsonl"])
    assert sender.post("/api/recordings/", mine.manifest()).status_code == 201
    assert sender.patch(mine, own, 0, mine.blob(own)).status_code == 204
    if way == "withdrawn":
        rights.withdraw(Recording.objects.get())
    else:
        erasure.erase(stranger, by=None)
    assert pictures.store().exists(sha(episode)) and not pictures.store().exists(own)


def test_what_a_killed_process_put_into_the_store_goes_too(sender: Sender) -> None:
    mine = Recorded()
    assert sender.post("/api/recordings/", mine.manifest()).status_code == 201
    digest = sha(mine.files["events.jsonl"])
    data = mine.blob(digest)
    sender.patch(mine, digest, 0, data[:-1])
    spool.path_of(mine.name, digest).write_bytes(data)
    pictures.store().put(data)  # and then it was killed, before it noted that
    rights.withdraw(Recording.objects.get())
    assert not pictures.store().exists(digest)


@pytest.mark.parametrize(
    ("about", "named"),
    [
        ({"to_delete": ["a" * 64]}, "to_delete"), ({"sounds": []}, "sounds"),
        ({"wall_start": "now"}, "wall_start"), ({"wall_start": [1]}, "wall_start"),
        ({"wall_start": 10**400}, "wall_start"),
    ],
)  # fmt: skip
def test_what_the_server_notes_itself_is_not_taken_from_a_recorder(
    sender: Sender, about: dict[str, Any], named: str
) -> None:
    recorded = Recorded()
    recorded.about |= about
    answer = sender.post("/api/recordings/", recorded.manifest())
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_manifest")
    assert named in answer.json()["message"]


@pytest.mark.parametrize("name", ["\\u0000", "\\ud83d", "\\u001b[2J"])
def test_a_cause_that_quotes_what_no_database_keeps_is_told_all_the_same(
    sender: Sender, queue: Any, name: str
) -> None:
    recorded = Recorded()
    recorded.files["events.jsonl"] = b'{"kind":"moved","%s":1}\n' % name.encode()
    row = arrived(sender, queue, recorded)
    assert row.status == Recording.Status.FAILED
    assert "line 1: moved: unknown \ufffd" in row.cause and row.cause.isprintable()


def test_a_place_of_four_thousand_digits_is_a_problem_like_any_other(
    sender: Sender, queue: Any
) -> None:
    recorded = Recorded()
    recorded.steps[0]["action"]["x"] = 10**4000
    recorded.files["steps.jsonl"] = lines(recorded.steps)
    row = arrived(sender, queue, recorded)
    assert (row.status, row.cause) == ("in_review", "")
    assert not row.steps.get(index=0).kept


def test_what_is_held_at_once_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "steps.jsonl"
    with path.open("wb") as file:
        file.truncate(content.HELD_BYTES + 1)
    for read in (content.steps, content.words):
        with pytest.raises(BadContent, match=r"steps\.jsonl has 67108865 bytes"):
            read(path)
    monkeypatch.setattr(content, "SOUNDS", 2)
    path.write_text("".join(to_line(AudioWritten(1.0, f"{n}.flac", 1)) + "\n" for n in range(3)))
    with pytest.raises(BadContent, match="line 3: more than 2 sounds"):
        content.events(path)


def test_steps_that_go_back_little_by_little_are_not_in_order(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(
        lines([{"began": t, "ended": 9.0, "action": click(1, 1)} for t in (5.0, 4.3, 3.6)])
    )
    with pytest.raises(BadContent, match="line 3: the steps are not in order"):
        content.steps(path)


def test_a_recording_that_kills_its_workers_is_given_up(
    sender: Sender, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kills(row: Recording) -> None:
        raise Killed

    recorded = Recorded()
    sender.send(recorded)
    queue.clear()
    row = Recording.objects.get()
    monkeypatch.setitem(progress.STAGES, Recording.Status.UPLOADED, kills)
    for _ in range(progress.ATTEMPTS):
        with pytest.raises(Killed):
            progress.advance(row.pk)
        Recording.objects.update(worker_at=timezone.now() - 2 * progress.WORKER_SILENT)
    progress.advance(row.pk)
    row.refresh_from_db()
    assert row.status == "failed" and "workers ended while uploaded" in row.cause
    monkeypatch.undo()
    monkeypatch.setattr(jobs, "soon", lambda job, pk: queue.append((job.run, pk)))
    assert progress.retry(row)
    queue.run()
    row.refresh_from_db()
    assert row.status == "in_review"
