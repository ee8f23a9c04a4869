"""How a recording gets from its last byte to its reviewers: one stage at a time, each to be done again.

A stage reads the row, works outside of any transaction, and writes all it found in one, if the row
still waits for it. Two workers at one stage cost time, nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from agent.policy import PolicyError, PolicyMisconfigured, PolicyRefused
from agent.speech import SpeechError, SpeechUnreachable
from annotation import jobs
from annotation.models import Recording
from annotation.recordings import aligning, reading, rights, transcribing, uploads
from annotation.recordings.errors import BadContent
from blobs import BlobError

log = logging.getLogger(__name__)

WORKER_SILENT = timedelta(minutes=2)
HEARTBEAT_S = 20.0
ATTEMPTS = 6  # for what may be better next time: an endpoint that is away, a worker that was killed

STAGES: dict[str, Callable[[Recording], None]] = {
    Recording.Status.UPLOADED: reading.read,
    Recording.Status.TRANSCRIBING: transcribing.hear,
    Recording.Status.ALIGNING: aligning.align,
}


def advance(recording_id: int) -> None:
    """Do the stage that a recording waits for, and ask for the next; nothing where it waits for none."""
    now = timezone.now()
    idle = Q(worker_at=None) | Q(worker_at__lt=now - WORKER_SILENT)
    waiting = Recording.objects.filter(idle, pk=recording_id, status__in=Recording.WORKING)
    if not waiting.update(worker_at=now, attempts=F("attempts") + 1):
        return
    row = Recording.objects.select_related("owner", "task").get(pk=recording_id)
    stage = row.status
    if row.attempts > ATTEMPTS:  # nobody is left to say why: it may be what kills them
        _fail(row, stage, f"{ATTEMPTS} workers ended while {stage}: their log may say why")
        return
    try:
        with _alive(row):
            STAGES[stage](row)
    except (SpeechUnreachable, BlobError) as error:
        _again(row, stage, error)
    except (BadContent, SpeechError, PolicyMisconfigured, PolicyRefused) as error:
        _fail(row, stage, str(error))
    except PolicyError as error:
        _again(row, stage, error)
    except Exception:
        log.exception("recording %s broke while %s", row.name, stage)
        _fail(row, stage, f"Tandem itself broke while {stage}: the log of the worker says how")
    else:
        moved = Recording.objects.filter(pk=row.pk).exclude(status=stage)
        moved.update(worker_at=None, attempts=0)
        if moved.filter(status__in=Recording.WORKING).exists():
            jobs.soon(jobs.advance_recording, row.pk)


def retry(recording: Recording) -> bool:
    """Do the stage in which a recording failed once more; False where it has not failed."""
    failed = Recording.objects.filter(pk=recording.pk, status=Recording.Status.FAILED)
    stage = recording.failed_in or Recording.Status.UPLOADED
    if failed.update(status=stage, cause="", attempts=0, worker_at=None):
        jobs.soon(jobs.advance_recording, recording.pk)
        return True
    return False


def reap() -> None:
    """Enqueue what waits and nobody works on; give up what is too old."""
    silent = Q(worker_at__lt=timezone.now() - WORKER_SILENT)
    silent |= Q(worker_at=None, uploaded_at__lt=timezone.now() - timedelta(seconds=20))
    waiting = Recording.objects.filter(silent, status__in=Recording.WORKING)
    for pk in waiting.values_list("pk", flat=True)[:100]:
        jobs.soon(jobs.advance_recording, pk)
    uploads.give_up_old()
    uploads.sweep()
    rights.end_retention()


def _again(row: Recording, stage: str, error: Exception) -> None:
    if row.attempts >= ATTEMPTS:
        _fail(row, stage, f"given up after {ATTEMPTS} attempts: {error}")
        return
    # The worker's last sign of life stays: the reaper comes back when that is old.
    Recording.objects.filter(pk=row.pk, status=stage).update(
        cause=_told(f"will be tried again: {error}")
    )


def _fail(row: Recording, stage: str, cause: str) -> None:
    Recording.objects.filter(pk=row.pk, status=stage).update(
        status=Recording.Status.FAILED, failed_in=stage, cause=_told(cause), worker_at=None
    )


def _told(cause: str) -> str:
    """Return a cause as it can be stored: it may quote what a recorder or a model wrote."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in cause[:4000])


@contextmanager
def _alive(row: Recording) -> Iterator[None]:
    """Say every HEARTBEAT_S that somebody works on the row: hearing an hour takes a while."""
    done = threading.Event()

    def beat() -> None:
        try:
            while not done.wait(HEARTBEAT_S):
                Recording.objects.filter(pk=row.pk).update(worker_at=timezone.now())
        finally:
            connection.close()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
