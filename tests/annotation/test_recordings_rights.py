"""What contributors gave can be taken back, whole, and ends by itself when its time is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Consent, Project, Recording, Session, Task
from annotation.recordings import retention, rights
from annotation.session import pictures
from blobs import StoreUnreachable
from tests.annotation.recorded import Recorded, Sender, accept, arrived, sha, signed_in
from tests.annotation.test_recordings_upload import token_of
from training import erasure
from training.data import datasets
from training.data.selection import Filters
from training.models import Checkpoint, Dataset, Run


@pytest.fixture
def sender(stranger: Any) -> Sender:
    return Sender(token_of(stranger))


def test_withdrawing_reaches_blobs_session_and_datasets(
    sender: Sender, queue: Any, stranger: Any, reviewer: Any, admin_user: Any
) -> None:
    recorded, before = Recorded(), erasure.unfinished()  # other tests' people share this store
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
    assert erasure.erase_withdrawn() == 0 and set(erasure.unfinished()) <= set(before)
    rights.withdraw(row)


def test_a_contributor_reads_which_models_learnt_from_it(
    sender: Sender, queue: Any, stranger: Any, reviewer: Any, admin_user: Any
) -> None:
    row = accept(arrived(sender, queue), reviewer, admin_user)
    frozen = datasets.freeze(name="ct-3", pool="ct", filters=Filters(), by=None)
    run = Run.objects.create(name="ct-run", kind="ct", dataset=frozen)
    Checkpoint.objects.create(version="tandem-7", run=run, uri="/x")
    page = signed_in(stranger)
    told = page.get(f"/recordings/{row.name}/").content.decode()
    assert "dataset ct-3 (CT), from which tandem-7 learnt" in told
    assert "1 dataset" in page.get("/recordings/").content.decode()


@pytest.mark.parametrize(
    ("days", "unaccepted", "told", "not_told"),
    [
        (0, 0, "kept until you withdraw it", "deleted"),
        (30, 0, "Everything you give is deleted 30 days after", "not accepted"),
        (0, 1, "What is not accepted is deleted a day after you gave it. What is accepted is kept", "30"),
        (30, 7, "What is not accepted is deleted 7 days after", "is kept until"),
        (30, 60, "Everything you give is deleted 30 days after", "60"),
    ],
)  # fmt: skip
def test_the_retention_in_force_is_told_where_one_agrees(
    sender: Sender, queue: Any, stranger: Any, days: int, unaccepted: int, told: str, not_told: str
) -> None:
    Consent.objects.create(version="9", text="We record.", retain_days=days)
    Project.objects.update_or_create(pk=1, defaults={"retain_days": unaccepted})
    said = sender.get("/api/recorder/consent").json()
    assert said["version"] == "9" and said["text"].startswith("We record.\n\n")
    assert told in said["text"] and not_told not in said["text"]
    assert said["retention"]["days"] == days
    assert said["retention"]["unaccepted_days"] == unaccepted
    recorded = Recorded()
    recorded.about["consent"]["version"] = "9"
    row = arrived(sender, queue, recorded)
    listed = signed_in(stranger).get("/recordings/").content.decode()
    assert told in listed
    ends = retention.under(row.consent).ends(row)
    soonest = min([n for n in (days, unaccepted) if n], default=0)
    assert ends == (row.created_at + timedelta(days=soonest) if soonest else None)
    if ends:
        assert f"{ends:%Y-%m-%d}" in listed


def test_withdrawing_while_the_store_is_away_is_finished_later(
    sender: Sender, queue: Any, stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, store = Recorded(), pictures.store()
    arrived(sender, queue, recorded)

    class Away:
        def delete(self, key: str) -> None:
            raise StoreUnreachable("the store is away")

    with monkeypatch.context() as away:
        away.setattr(pictures, "store", Away)
        page = signed_in(stranger)
        told = page.post(f"/recordings/{recorded.name}/withdraw/", follow=True)
    assert told.status_code == 200 and "as soon as the store answers" in told.content.decode()
    assert store.exists(sha(recorded.files["events.jsonl"]))
    assert rights.end_retention() == 1
    assert not store.exists(sha(recorded.files["events.jsonl"]))


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
