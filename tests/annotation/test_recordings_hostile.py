"""Recorders that name what is not theirs, and recordings made to break whoever reads them."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.models import Recording
from annotation.recordings import rights, spool
from annotation.session import pictures
from tests.annotation.recorded import Recorded, Sender, arrived, sha, signed_in
from tests.annotation.test_recordings_upload import token_of
from training import erasure


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
