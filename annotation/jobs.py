"""What Celery runs: each loads nothing but an id and calls one verb; it may run twice or never."""

from __future__ import annotations

from celery import Task as CeleryTask
from celery import shared_task
from django.db import transaction


def soon(job: CeleryTask, row_id: int) -> None:
    """Enqueue `job(row_id)` after the commit; a broker that is away costs time, not the answer."""
    transaction.on_commit(lambda: job.apply_async((row_id,), retry=False), robust=True)


@shared_task(ignore_result=True)
def prepare(session_id: int) -> None:
    """Lease and set up a computer for a session."""
    from annotation.session import preparing

    preparing.prepare(session_id)


@shared_task(ignore_result=True)
def propose(point_id: int) -> None:
    """Ask the policy about a decision point."""
    from annotation.session import proposals

    proposals.propose(point_id)


@shared_task(ignore_result=True)
def execute(step_id: int) -> None:
    """Do a chosen step."""
    from annotation.session import steps

    steps.execute(step_id)


@shared_task(ignore_result=True)
def close(session_id: int) -> None:
    """Verify and submit a session that is ending."""
    from annotation.session import endings

    endings.close(session_id)


@shared_task(ignore_result=True)
def reap() -> None:
    """Find what dead processes left undone; beat calls it every few seconds."""
    from annotation import reaper

    reaper.reap()


@shared_task(ignore_result=True)
def advance_recording(recording_id: int) -> None:
    """Do what an uploaded recording waits for: read it, hear it, align it, refine it."""
    from annotation.recordings import progress

    progress.advance(recording_id)


@shared_task(ignore_result=True)
def reword_recording(recording_id: int) -> None:
    """Say the thoughts of an accepted recording in other words."""
    from annotation.recordings import rewording

    rewording.reword(recording_id)


@shared_task(ignore_result=True)
def reap_recordings() -> None:
    """Find recordings that dead workers left, old uploads, and what is kept too long."""
    from annotation.contributing import proposing
    from annotation.recordings import progress

    progress.reap()
    proposing.reap()


@shared_task(ignore_result=True)
def write_queries(request_id: int) -> None:
    """Ask the project's writer for queries."""
    from annotation.contributing import proposing

    proposing.write(request_id)
