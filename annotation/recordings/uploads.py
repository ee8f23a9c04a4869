"""Verbs of an upload: announce, append, complete. Each may be called again, by two at once, at any byte.

Bytes go to the spool, and from there to the blob store when a file is whole and is what its name says.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import IO

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils import timezone

from annotation import jobs
from annotation.models import Consent, Recording, RecordingFile, Task
from annotation.recordings import manifest as manifests
from annotation.recordings import rights, spool
from annotation.recordings.errors import Conflict, TooLarge, TooMuch, Wrong, WrongHash
from annotation.session import pictures
from blobs import blob_key

PART_BYTES = 4 << 20  # what one PATCH should carry; more than twice as much is refused
OPEN_UPLOADS = 10
PERSON_BYTES = 100 << 30
DAY_RECORDINGS = 200
SEEN_EVERY = timedelta(hours=1)
GIVEN_UP = "nobody went on with its upload"

Uploading = Recording.Status.UPLOADING


def announce(found: manifests.Manifest, *, owner: User) -> tuple[Recording, bool]:
    """Return the recording of a manifest and whether it is new; announcing it again changes nothing.

    Raises Conflict where the id is taken by another manifest or the consent is unknown, TooMuch.
    """
    row = Recording.objects.filter(name=found.name).first()
    if row is None:
        consent = Consent.objects.filter(version=found.consent).first()
        if consent is None:
            raise Conflict(
                "unknown_consent",
                f"consent {found.consent!r} is not one of this server: read and accept its own first",
            )
        try:
            with transaction.atomic():
                # Two at once would each count the other as not there.
                User.objects.select_for_update(no_key=True).get(pk=owner.pk)
                row = Recording.objects.filter(name=found.name).first()
                if row is None:
                    _within_limits(owner, found.bytes)
                    return _created(found, owner, consent), True
        except IntegrityError:  # announced at once by somebody else
            row = Recording.objects.filter(name=found.name).first()
    if row is None or row.owner_id != owner.pk or row.manifest_sha256 != found.sha256:
        raise Conflict(
            "other_manifest", "another recording has this id: review and confirm it again"
        )
    if row.status == Recording.Status.WITHDRAWN:
        raise Conflict(
            "withdrawn", "it was withdrawn: to give it after all, review and confirm it again"
        )
    return row, False


def missing(recording: Recording) -> list[str]:
    """Return the sha256 of what still has to come, each once."""
    if recording.status != Uploading:
        return []
    rows = recording.files.filter(stored=False).order_by("sha256")
    return list(rows.values_list("sha256", flat=True).distinct())


def offset(recording: Recording, sha256: str) -> int:
    """Return how many bytes of a file are here; raises Wrong for one that is not in the manifest."""
    file = _file(recording, sha256)
    if file.stored:
        return int(file.bytes)
    return min(spool.length(recording.name, sha256), int(file.bytes))


def append(recording: Recording, sha256: str, *, at: int, source: IO[bytes], size: int) -> int:
    """Take the next `size` bytes of a file and return its new length.

    Raises Conflict with the right offset, TooLarge, WrongHash (the file begins again), NoRoom.
    """
    if size > 2 * PART_BYTES:
        raise TooLarge("part_too_large", f"send at most {PART_BYTES} bytes at once")
    with transaction.atomic():
        # The lock on one row keeps two uploads of a recording from writing into each other.
        file = (
            RecordingFile.objects.select_for_update()
            .filter(recording=recording, sha256=sha256)
            .order_by("pk")
            .first()
        )
        if file is None:
            raise _unknown(sha256)
        here = int(file.bytes) if file.stored else spool.length(recording.name, sha256)
        if at != here:
            raise Conflict("wrong_offset", f"go on at byte {here}", offset=here)
        if file.stored:
            return here
        recording.refresh_from_db(fields=["status"])
        if recording.status != Uploading:
            raise Conflict("not_uploading", f"the recording is {recording.status}")
        if at + size > file.bytes:
            raise Conflict("too_many_bytes", f"the manifest says {file.bytes} bytes", offset=here)
        here = spool.append(recording.name, sha256, offset=at, source=source, limit=at + size)
    now = timezone.now()
    if recording.worker_at is None or now - recording.worker_at > SEEN_EVERY:
        Recording.objects.filter(pk=recording.pk, status=Uploading).update(worker_at=now)
    if here == file.bytes:
        _keep(recording, file)
    return here


def complete(recording: Recording) -> Recording:
    """Say that everything has come; the next worker reads it. Raises Conflict naming what is missing."""
    for file in recording.files.filter(stored=False):
        if spool.length(recording.name, file.sha256) == file.bytes:
            _keep(recording, file)  # the store was away when the last byte came
    left = missing(recording)
    if left:
        raise Conflict("incomplete", f"{len(left)} files have not come whole", missing=left[:1000])
    waiting = Recording.objects.filter(pk=recording.pk, status=Uploading)
    now = timezone.now()
    if waiting.update(status=Recording.Status.UPLOADED, uploaded_at=now, worker_at=None):
        spool.forget(recording.name)
        jobs.soon(jobs.advance_recording, recording.pk)
    recording.refresh_from_db()
    return recording


def give_up_old(*, older_than: timedelta = timedelta(days=14)) -> int:
    """Delete uploads that nobody went on with, with all that came; their recorder still has it."""
    limit = timezone.now() - older_than
    old = Recording.objects.filter(status=Uploading, created_at__lt=limit)
    going_on = set(Recording.Status.values) - {Uploading}
    for row in old.exclude(worker_at__gte=limit)[:50]:
        rights.withdraw(row, cause=GIVEN_UP, spare=going_on)
    # Nobody withdrew these: once their bytes are gone they may come again.
    gone = Recording.objects.filter(status=Recording.Status.WITHDRAWN, cause=GIVEN_UP)
    count, _ = gone.exclude(about__has_key="to_delete").delete()
    return count


def sweep() -> None:
    """Delete what waits in the spool for a recording that is no longer there: its person was erased."""
    waiting = spool.older_than(SEEN_EVERY)
    known = Recording.objects.filter(name__in=waiting, status=Uploading)
    for name in set(waiting) - set(known.values_list("name", flat=True)):
        spool.forget(name)


def _keep(recording: Recording, file: RecordingFile) -> None:
    """Put a whole file into the store; what is not what its name says begins again."""
    if spool.sha256_of(recording.name, file.sha256) != file.sha256:
        with transaction.atomic():
            row = RecordingFile.objects.select_for_update().filter(pk=file.pk).first()
            if row is None or row.stored:  # withdrawn, or somebody else has just put it there
                return
            spool.forget(recording.name, file.sha256)
        raise WrongHash(
            "wrong_hash", "the file is not what its sha256 says: send it again", offset=0
        )
    source = spool.path_of(recording.name, file.sha256) if file.bytes else b""
    pictures.store().put_object(blob_key(file.sha256), source)
    if not recording.files.filter(sha256=file.sha256).update(stored=True):
        rights.delete_blobs([file.sha256])  # withdrawn in the meantime
    spool.forget(recording.name, file.sha256)


def _created(found: manifests.Manifest, owner: User, consent: Consent) -> Recording:
    row = Recording.objects.create(
        name=found.name, owner=owner, consent=consent, kind=found.kind, title=found.title,
        instruction=found.instruction, about=dict(found.about), manifest_sha256=found.sha256,
        bytes=found.bytes, confirmed_at=found.confirmed_at, task=_task(found.task),
    )  # fmt: skip
    files: Sequence[RecordingFile] = [
        RecordingFile(recording=row, path=one.path, sha256=one.sha256, bytes=one.bytes)
        for one in found.files
    ]
    RecordingFile.objects.bulk_create(files, batch_size=2000)
    return row


def _task(name: str) -> Task | None:
    asked = Task.objects.exclude(recorded_as="")
    return asked.filter(external_id=name).first() if name else None


def _within_limits(owner: User, coming: int) -> None:
    mine = Recording.objects.filter(owner=owner)
    if mine.filter(status=Uploading).count() >= OPEN_UPLOADS:
        raise TooMuch(
            "too_many_uploads",
            f"{OPEN_UPLOADS} uploads are not finished: go on with those, or withdraw them",
            retry_after_s=600,
        )
    today = mine.filter(created_at__gt=timezone.now() - timedelta(days=1)).count()
    if today >= DAY_RECORDINGS:
        raise TooMuch("too_many_today", "that is enough for one day", retry_after_s=3600)
    kept = mine.exclude(status=Recording.Status.WITHDRAWN).aggregate(sum=Sum("bytes"))["sum"] or 0
    if kept + coming > PERSON_BYTES:
        raise TooMuch(
            "quota",
            f"what you gave would be more than {PERSON_BYTES >> 30} GiB",
            retry_after_s=86400,
        )


def _file(recording: Recording, sha256: str) -> RecordingFile:
    file = recording.files.filter(sha256=sha256).first()
    if file is None:
        raise _unknown(sha256)
    return file


def _unknown(sha256: str) -> Wrong:
    error = Wrong("unknown_file", f"{sha256[:12]} is not in the manifest of this recording")
    error.status = 404
    return error
