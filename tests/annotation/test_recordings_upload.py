"""Uploads that break off, come twice, lie, or are too much: what is refused, and that nothing is lost."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import Recording, RecordingFile
from annotation.recordings import devices, manifest, progress, rights, spool, uploads
from annotation.recordings.errors import TooMuch
from annotation.session import pictures
from tests.annotation.recorded import Recorded, Sender, lines, sha


def token_of(user: Any) -> str:
    begun = devices.begin(device_name="laptop", address=f"test-{user.pk}")
    devices.decide(begun.user_code, by=user, approve=True)
    return devices.poll(begun.device_code)


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


def test_an_upload_goes_on_at_every_byte(sender: Sender) -> None:
    recorded = Recorded()
    assert sender.post("/api/recordings/", recorded.manifest()).status_code == 201
    digest = sha(recorded.files["events.jsonl"])
    data = recorded.blob(digest)
    for at in range(0, len(data), 37):
        assert sender.offset(recorded, digest).headers["Upload-Offset"] == str(at)
        assert sender.patch(recorded, digest, at, data[at : at + 37]).status_code == 204
    assert pictures.store().get(digest) == data
    again = sender.patch(recorded, digest, 0, data[:5])
    assert (again.status_code, again.headers["Upload-Offset"]) == (409, str(len(data)))
    missing = sender.post("/api/recordings/", recorded.manifest())
    assert missing.status_code == 200 and digest not in missing.json()["missing"]


def test_what_is_whole_is_queued_once(sender: Sender, queue: Any) -> None:
    recorded = Recorded()
    assert sender.send(recorded).status_code == 202
    assert sender.post(f"/api/recordings/{recorded.name}/complete").status_code == 202
    row = Recording.objects.get(name=recorded.name)
    assert row.status == Recording.Status.UPLOADED and len(queue) == 1
    assert not spool.path_of(row.name, "").exists()
    assert sender.get(f"/api/recordings/{row.name}").json()["status"] == "uploaded"


def test_a_wrong_offset_is_answered_with_the_right_one(sender: Sender) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest = sha(recorded.files["steps.jsonl"])
    answer = sender.patch(recorded, digest, 5, b"x")
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (409, "0")
    assert answer.json()["error"] == "wrong_offset"


def test_a_wrong_hash_begins_again_and_then_comes_right(sender: Sender) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest = sha(recorded.files["steps.jsonl"])
    data = recorded.blob(digest)
    wrong = sender.patch(recorded, digest, 0, bytes(len(data)))
    assert (wrong.status_code, wrong.headers["Upload-Offset"]) == (460, "0")
    assert not pictures.store().exists(digest)
    assert sender.patch(recorded, digest, 0, data).status_code == 204


def test_more_bytes_than_announced_are_refused_and_the_rest_stays(sender: Sender) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest = sha(recorded.files["steps.jsonl"])
    data = recorded.blob(digest)
    sender.patch(recorded, digest, 0, data[:10])
    assert sender.patch(recorded, digest, 10, data[10:] + b"more").status_code == 409
    assert sender.offset(recorded, digest).headers["Upload-Offset"] == "10"
    assert sender.patch(recorded, digest, 10, bytes(2 * uploads.PART_BYTES + 1)).status_code == 413


def test_an_incomplete_upload_is_not_completed(sender: Sender) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    answer = sender.post(f"/api/recordings/{recorded.name}/complete")
    assert (
        answer.status_code == 409 and sha(recorded.files["steps.jsonl"]) in answer.json()["missing"]
    )


def test_another_manifest_under_the_same_id_is_refused(sender: Sender, annotator: Any) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    changed = Recorded(name=recorded.name)
    changed.files["steps.jsonl"] = lines(changed.steps[:1])
    assert sender.post("/api/recordings/", changed.manifest()).json()["error"] == "other_manifest"
    # Nobody else sees it, continues it, or learns more than that the id is taken.
    other = Sender(token_of(annotator))
    assert other.post("/api/recordings/", recorded.manifest()).status_code == 409
    assert other.get(f"/api/recordings/{recorded.name}").status_code == 404
    assert other.offset(recorded, "0" * 64).status_code == 404


BROKEN = [
    ("id", "../../etc", "id"),
    ("format", "tandem-recording/9", "format"),
    ("recording", [], "recording"),
    ("files", [], "files"),
    ("files", [{"path": "../secret", "sha256": "0" * 64, "bytes": 1}], "files[0]"),
    ("files", [{"path": "audio/../../x.flac", "sha256": "0" * 64, "bytes": 1}], "files[0]"),
    ("files", [{"path": "/etc/passwd", "sha256": "0" * 64, "bytes": 1}], "files[0]"),
    ("files", [{"path": f"frames/{'a' * 64}.png", "sha256": "0" * 64, "bytes": 1}], "files[0]"),
    ("files", [{"path": "events.jsonl", "sha256": "zz", "bytes": 1}], "files[0]"),
    ("files", [{"path": "events.jsonl", "sha256": "0" * 64, "bytes": -1}], "files[0]"),
    ("files", [{"path": "events.jsonl", "sha256": "0" * 64, "bytes": 1}] * 2, "files"),
    ("confirmed_at", None, "confirmed_at"),
    ("confirmed_at", 1e300, "confirmed_at"),
]


@pytest.mark.parametrize(("field", "value", "named"), BROKEN)
def test_a_broken_manifest_is_refused_by_its_field(
    sender: Sender, field: str, value: object, named: str
) -> None:
    body = {**Recorded().manifest(), field: value}
    answer = sender.post("/api/recordings/", body)
    assert answer.status_code == 400, answer.content
    assert (answer.json()["error"], answer.json()["field"]) == ("bad_manifest", named)
    assert not Recording.objects.exists()


def test_what_is_no_json_or_nobodys_is_refused(sender: Sender) -> None:
    for body in ("{", "[1]", '"x"', "[" * 100_000):
        answer = sender.client.post(
            "/api/recordings/", body, content_type="application/json", headers=sender.headers
        )
        assert (answer.status_code, answer.json()["error"]) == (400, "not_json")
    assert (
        Client().post("/api/recordings/", "{}", content_type="application/json").status_code == 401
    )


def test_limits_say_which_and_when(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Recorded().manifest()
    large["files"][0]["bytes"] = manifest.FILE_BYTES + 1
    answer = sender.post("/api/recordings/", large)
    assert answer.status_code == 413 and answer.json()["file"] == large["files"][0]["path"]
    monkeypatch.setattr(uploads, "OPEN_UPLOADS", 1)
    assert sender.post("/api/recordings/", Recorded().manifest()).status_code == 201
    full = sender.post("/api/recordings/", Recorded().manifest())
    assert full.status_code == 429 and int(full.headers["Retry-After"]) > 0
    monkeypatch.setattr(uploads, "OPEN_UPLOADS", 9)
    monkeypatch.setattr(uploads, "PERSON_BYTES", 10)
    assert sender.post("/api/recordings/", Recorded().manifest()).json()["error"] == "quota"


def test_one_file_too_many_is_said_and_as_many_as_allowed_are_read(sender: Sender) -> None:
    body = Recorded().manifest()
    few = len(body["files"])
    body["files"] += [
        {"path": f"frames/{n:064x}.png", "sha256": f"{n:064x}", "bytes": 1}
        for n in range(manifest.FILES - few)
    ]
    assert len(manifest.read(body).files) == manifest.FILES == 100_000
    body["files"].append({"path": f"frames/{'a' * 64}.png", "sha256": "a" * 64, "bytes": 1})
    answer = sender.post("/api/recordings/", body)
    assert (answer.status_code, answer.json()["error"]) == (413, "too_many_files")
    assert "100001" in answer.json()["message"] and not Recording.objects.exists()


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d of it"])
def test_text_that_no_database_keeps_is_refused(sender: Sender, text: str) -> None:
    recorded = Recorded()
    recorded.about["screen"] = {"monitors": [{text: 1}]}
    for url, body in (
        ("/api/recordings/", recorded.manifest()),
        ("/api/device/token", {"device_code": text}),
    ):
        answer = sender.post(url, body)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_text"), url
    recorded.about["screen"] = {"scale": float("nan")}
    assert sender.post("/api/recordings/", recorded.manifest()).json()["error"] == "bad_text"
    assert sender.post("/api/device/code", {"device_name": text}).status_code == 200  # is cleaned


def test_a_header_that_is_no_number_is_named(sender: Sender) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    url = f"/api/recordings/{recorded.name}/files/{sha(recorded.files['events.jsonl'])}"
    for offset in ("", "-1", "1.5", "٣", "9" * 16):
        headers = {**sender.headers, "Upload-Offset": offset}
        answer = sender.client.patch(url, b"x", headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_header"), offset
        assert "Upload-Offset" in answer.json()["message"]


def test_an_unknown_consent_is_named(sender: Sender) -> None:
    recorded = Recorded()
    recorded.about["consent"] = {"version": "0"}
    answer = sender.post("/api/recordings/", recorded.manifest())
    assert answer.status_code == 409 and answer.json()["error"] == "unknown_consent"


def test_a_full_disk_loses_nothing(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest = sha(recorded.files["events.jsonl"])
    data = recorded.blob(digest)
    sender.patch(recorded, digest, 0, data[:20])
    monkeypatch.setattr(spool, "SPARE", 1 << 62)
    assert sender.patch(recorded, digest, 20, data[20:]).status_code == 507
    monkeypatch.undo()
    assert sender.patch(recorded, digest, 20, data[20:]).status_code == 204


def test_a_store_that_was_away_gets_the_file_at_the_end(
    sender: Sender, settings: Any, tmp_path: Any
) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest = sha(recorded.files["events.jsonl"])
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    settings.STORAGE_URL = f"file://{blocked}/store"
    pictures.store.cache_clear()
    try:
        away = sender.patch(recorded, digest, 0, recorded.blob(digest))
        assert away.status_code == 503 and away.headers["Retry-After"]
    finally:
        pictures.store.cache_clear()
    settings.STORAGE_URL = f"file://{tmp_path}/store"
    assert sender.offset(recorded, digest).headers["Upload-Offset"] == str(
        len(recorded.blob(digest))
    )
    for other in sender.post("/api/recordings/", recorded.manifest()).json()["missing"]:
        if other != digest:
            sender.patch(recorded, other, 0, recorded.blob(other))
    assert sender.post(f"/api/recordings/{recorded.name}/complete").status_code == 202
    pictures.store.cache_clear()


def test_uploads_that_nobody_goes_on_with_end_with_all_that_came(sender: Sender) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest, whole = sha(recorded.files["events.jsonl"]), sha(recorded.files["steps.jsonl"])
    sender.patch(recorded, digest, 0, recorded.blob(digest)[:5])
    sender.patch(recorded, whole, 0, recorded.blob(whole))
    old = timezone.now() - timedelta(days=15)
    Recording.objects.update(created_at=old)
    progress.reap()  # begun long ago, but somebody goes on with it
    assert spool.length(recorded.name, digest) == 5
    Recording.objects.update(worker_at=old)
    progress.reap()
    assert not Recording.objects.exists() and not RecordingFile.objects.exists()
    assert spool.length(recorded.name, digest) == 0
    assert not pictures.store().exists(whole)
    assert sender.send(recorded).status_code == 202  # its recorder may begin anew


def test_what_waits_of_an_erased_person_goes_from_the_spool(sender: Sender) -> None:
    erased, kept = Recorded(), Recorded()
    for recorded in (erased, kept):
        sender.post("/api/recordings/", recorded.manifest())
        digest = sha(recorded.files["events.jsonl"])
        sender.patch(recorded, digest, 0, recorded.blob(digest)[:5])
        folder = spool.path_of(recorded.name, "")
        os.utime(folder, (0, 0))
    Recording.objects.filter(name=erased.name).delete()
    uploads.sweep()
    assert not spool.path_of(erased.name, "").exists()
    assert spool.length(kept.name, sha(kept.files["events.jsonl"])) == 5


def test_what_was_withdrawn_does_not_come_back_by_itself(sender: Sender, queue: Any) -> None:
    recorded = Recorded()
    sender.send(recorded)
    rights.withdraw(Recording.objects.get(name=recorded.name))
    again = sender.post("/api/recordings/", recorded.manifest())
    assert (again.status_code, again.json()["error"]) == (409, "withdrawn")


def test_a_file_that_comes_whole_while_it_is_withdrawn_is_not_kept(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Recorded()
    sender.post("/api/recordings/", recorded.manifest())
    digest = sha(recorded.files["events.jsonl"])
    store = pictures.store()

    class Slow:
        def put_object(self, key: str, source: Any) -> None:
            monkeypatch.undo()
            rights.withdraw(Recording.objects.get())
            store.put(recorded.blob(digest))  # the rest of it comes after all was deleted

    monkeypatch.setattr(pictures, "store", Slow)
    sender.patch(recorded, digest, 0, recorded.blob(digest))
    assert not store.exists(digest)


def test_a_folder_of_the_spool_outlives_the_files_that_leave_it(
    settings: Any, tmp_path: Any
) -> None:
    settings.RECORDING_SPOOL = tmp_path
    (tmp_path / "r").mkdir()
    spool.forget("r", "s")  # while another file is on its way into it
    assert (tmp_path / "r").is_dir()


def test_uploads_announced_at_once_keep_to_the_limit(
    transactional_db: None, stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "OPEN_UPLOADS", 1)
    within, both = uploads._within_limits, threading.Barrier(2)

    def counted(owner: Any, coming: int) -> None:
        within(owner, coming)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # would be over at once if both had counted before one wrote

    monkeypatch.setattr(uploads, "_within_limits", counted)

    def announce(_: int) -> bool:
        try:
            found = manifest.read(Recorded().manifest())
            return uploads.announce(found, owner=stranger)[1]
        except TooMuch:
            return False
        finally:
            connection.close()

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(announce, range(2))) == [False, True]


def test_two_uploads_of_one_recording_at_once_are_harmless(
    transactional_db: None, stranger: Any
) -> None:
    from annotation.models import Consent

    Consent.objects.get_or_create(version="1", defaults={"text": "yes"})
    recorded = Recorded()
    tokens = [token_of(stranger) for _ in range(3)]  # of three recorders of one person

    def send(which: int) -> list[int]:
        sender = Sender(tokens[which])
        seen = [sender.post("/api/recordings/", recorded.manifest()).status_code]
        for digest in {sha(data) for data in recorded.files.values()}:
            data = recorded.blob(digest)
            part = len(data) // 4 + 1
            for _ in range(200):
                at = int(sender.offset(recorded, digest).headers["Upload-Offset"])
                if at >= len(data):
                    break
                seen.append(sender.patch(recorded, digest, at, data[at : at + part]).status_code)
        for _ in range(50):
            done = sender.post(f"/api/recordings/{recorded.name}/complete").status_code
            seen.append(done)
            if done == 202:
                break
        connection.close()
        return seen

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = [code for codes in pool.map(send, range(3)) for code in codes]
    assert set(answers) <= {200, 201, 202, 204, 409, 460, 503} and answers.count(201) == 1
    row = Recording.objects.get()
    assert row.status == Recording.Status.UPLOADED
    for file in row.files.all():
        assert pictures.store().get(file.sha256) == recorded.files[file.path]
