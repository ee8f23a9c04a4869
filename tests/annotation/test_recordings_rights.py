"""What contributors gave can be taken back, whole, and ends by itself when its time is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Recording, Session, Task
from annotation.recordings import rights
from annotation.session import pictures
from tests.annotation.recorded import Recorded, Sender, accept, arrived, sha, signed_in
from tests.annotation.test_recordings_upload import token_of
from training import erasure
from training.data import datasets
from training.data.selection import Filters
from training.models import Dataset


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


def test_withdrawing_reaches_blobs_session_and_datasets(
    sender: Sender, queue: Any, stranger: Any, reviewer: Any, admin_user: Any
) -> None:
    recorded = Recorded()
    row = accept(arrived(sender, queue, recorded), reviewer, admin_user)
    frozen = datasets.freeze(name="ct-2", pool="ct", filters=Filters(), by=None)
    page = signed_in(stranger)
    assert b"ct-2" in page.get(f"/recordings/{row.name}/").content
    page.post(f"/recordings/{row.name}/withdraw/")
    store = pictures.store()
    assert not store.exists(sha(recorded.files["events.jsonl"]))
    assert erasure.erase_withdrawn() == 1
    row.refresh_from_db()
    assert (row.status, row.session, row.about, row.instruction) == ("withdrawn", None, {}, "")
    assert not Session.objects.exists() and not Task.objects.exists()
    assert Dataset.objects.get(pk=frozen.pk).erased_at is not None
    for data in recorded.files.values():
        assert not store.exists(sha(data))
    assert erasure.erase_withdrawn() == 0 and erasure.unfinished() == []
    rights.withdraw(row)


def test_what_another_shows_too_is_not_deleted(sender: Sender, queue: Any, annotator: Any) -> None:
    mine, theirs = Recorded(), Recorded()
    shared = next(path for path in mine.files if path.startswith("frames/"))
    theirs.files[shared] = mine.files[shared]
    row = arrived(sender, queue, mine)
    arrived(Sender(token_of(annotator)), queue, theirs)
    rights.withdraw(row)
    assert pictures.store().exists(sha(mine.files[shared]))
    assert not pictures.store().exists(sha(mine.files["events.jsonl"]))


def test_erasing_a_person_takes_recordings_that_were_never_accepted(
    sender: Sender, queue: Any, stranger: Any
) -> None:
    recorded = Recorded()
    arrived(sender, queue, recorded)
    assert erasure.trace(stranger).counts["recordings"] == 1
    erasure.erase(stranger, by=None)
    assert not Recording.objects.exists()
    assert not pictures.store().exists(sha(recorded.files["events.jsonl"]))


def test_retention_ends_what_is_too_old(sender: Sender, queue: Any) -> None:
    row = arrived(sender, queue)
    row.consent.retain_days = 30
    row.consent.save()
    assert rights.end_retention() == 0
    Recording.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert rights.end_retention() == 1
