"""Verbs of a contributor's rights: download all of it, withdraw it, and what is kept too long.

Withdrawing deletes here what only this recording shows. Where a Session was made of it, training
finds it by its row, marks what learnt from it and deletes the Session and its pictures.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotation.data.erasure import still_shown
from annotation.errors import Refused
from annotation.models import Project, Recording, Rewording, Session, Task
from annotation.recordings import spool
from annotation.session import pictures
from blobs import MissingBlob, blob_key

BLOCK = 1 << 20


def withdraw(recording: Recording, *, cause: str = "", spare: Collection[str] = ()) -> Recording:
    """Delete a recording for good; only that there was one stays. Withdrawing again finishes it.

    `cause` says why where it was not its contributor who did it; one that has come into a status of
    `spare` is left alone.
    """
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.status in spare:
            return row
        # Written down before anything goes: who comes again finds what is left to delete.
        left = sorted({*row.about.get("to_delete", ()), *_given(row)})
        if row.status != Recording.Status.WITHDRAWN:
            row.cause = cause
        row.status, row.fingerprint = Recording.Status.WITHDRAWN, ""
        row.title = row.instruction = ""
        row.about = {"to_delete": left}
        row.ended_at = row.ended_at or timezone.now()
        row.save()
        row.files.all().delete()
        row.utterances.all().delete()
        row.hearings.all().delete()
        row.steps.all().delete()
        row.reviews.all().delete()
    spool.forget(row.name)
    delete_blobs(left)
    if row.session_id is None:
        Task.objects.filter(external_id=f"recording/{row.name}").delete()
    Recording.objects.filter(pk=row.pk).update(about={})
    return row


def _given(row: Recording) -> Iterator[str]:
    """Yield the sha256 of what came whole: what was only announced may be somebody else's blob."""
    for file in row.files.all():
        # Of one that is whole in the spool a killed process may have put the blob already.
        if file.stored or spool.sha256_of(row.name, file.sha256) == file.sha256:
            yield file.sha256


def withdrawn_sessions() -> QuerySet[Session]:
    """Return the sessions whose recording was withdrawn: what training still has to erase."""
    gone = Recording.objects.filter(status=Recording.Status.WITHDRAWN)
    return Session.objects.filter(recording__in=gone).order_by("pk")


def forget_session(session: Session) -> None:
    """Delete the session of a withdrawn recording and the task that was only its own."""
    task, mine = session.task, f"recording/{session.recording.name}"
    session.delete()
    if task.external_id == mine:
        task.delete()


def delete_blobs(hashes: Collection[str]) -> None:
    """Delete the blobs that nobody shows any more."""
    for sha in sorted(set(hashes) - still_shown(hashes)):
        pictures.store().delete(blob_key(sha))


def end_retention() -> int:
    """Delete what is older than its consent or, not accepted, the project allows; returns how many."""
    life = ExpressionWrapper(
        F("consent__retain_days") * timedelta(days=1), output_field=DurationField()
    )
    old = (
        Recording.objects.exclude(status=Recording.Status.WITHDRAWN)
        .filter(consent__retain_days__gt=0)
        .annotate(life=life)
        .filter(created_at__lt=Now() - F("life"))
    )
    left = Recording.objects.filter(
        status=Recording.Status.WITHDRAWN, about__has_key="to_delete"
    )  # a killed process left some of its blobs
    rows = [*left[:50], *old[:50]]
    for row in rows:
        withdraw(row, cause="kept no longer than the consent under which it was given allows")
    return len(rows) + _delete_unaccepted()


def _delete_unaccepted() -> int:
    """Delete what was not accepted in the days that the project gives it."""
    days = Project.objects.values_list("retain_days", flat=True).first() or 0
    if not days:
        return 0
    kept = (Recording.Status.ACCEPTED, Recording.Status.WITHDRAWN)
    until = timezone.now() - timedelta(days=days)
    old = list(Recording.objects.exclude(status__in=kept).filter(created_at__lt=until)[:50])
    cause = f"not accepted within {days} days, after which this project deletes what was given"
    for row in old:
        withdraw(row, cause=cause, spare=kept)
    return len(old)


def write_zip(recording: Recording, target: IO[bytes]) -> None:
    """Write everything that there is of a recording as one zip; raises Refused for a withdrawn one."""
    if recording.status == Recording.Status.WITHDRAWN:
        raise Refused("it was withdrawn: nothing of it is here")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w") as archive:
        part = Path(folder) / "part"
        for file in recording.files.filter(stored=True):
            try:
                pictures.store().fetch(blob_key(file.sha256), part)
            except MissingBlob:
                continue
            archive.write(part, file.path)
        archive.writestr("tandem.json", json.dumps(_about(recording), indent=1, ensure_ascii=False))


def _about(recording: Recording) -> dict[str, Any]:
    return {
        "id": recording.name,
        "status": recording.status,
        "consent": recording.consent.version,
        "steps": list(
            recording.steps.values(
                "index", "action", "thought", "provenance", "model_version", "kept"
            )
        ),
        "rewordings": list(
            Rewording.objects.filter(step__recording=recording)
            .order_by("pk")
            .values("step__index", "text", "model_version")
        ),
        "reviews": list(recording.reviews.values("round", "verdict", "reasons", "fixes")),
        "utterances": list(
            recording.utterances.values("began", "ended", "text", "confidence", "by", "step__index")
        ),
    }


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield an open file block by block, then close it."""
    with file:
        file.seek(0)
        while block := file.read(BLOCK):
            yield block
