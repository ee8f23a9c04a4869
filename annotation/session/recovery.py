"""A computer that is gone: the session waits for another one, and nothing decided is lost."""

from __future__ import annotations

from django.db import transaction

from annotation import hints, jobs
from annotation.models import Session
from annotation.session import desktops, endings, fencing
from sandbox.leasing import leases


def lost(session: Session, *, cause: str) -> None:
    """Send an active session back to preparing; its steps are replayed on the next computer.

    The lost lease stays on the row until `preparing` has read the input that belongs to it.
    """
    with transaction.atomic():
        row = fencing.hold(session)
        if row.status != Session.Status.ACTIVE or row.outcome or row.lease_id != session.lease_id:
            return
        row.status = Session.Status.PREPARING
        row.stage = "the desktop was lost: preparing a new one"
        row.error = cause
        row.worker_at = None
        row.preparations += 1
        row.save(update_fields=["status", "stage", "error", "worker_at", "preparations"])
        endings.stale_open(row)
        hints.changed(row.pk, "session")
        jobs.soon(jobs.prepare, row.pk)
    if row.lease is not None:
        desktops.forget(row.lease)
        leases.lose(row.lease, cause=cause)
