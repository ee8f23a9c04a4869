"""Put right what dead processes left: the rows say what is missing, and the verbs may run twice."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from annotation import jobs
from annotation.models import DecisionPoint, Session, Step
from annotation.session import preparing, proposals, recovery, sessions
from sandbox.models import Lease

# A decision is done within a second or two; older ones were left by a dead process.
STEP_SILENT = timedelta(seconds=15)
RETRY_AFTER = timedelta(seconds=5)


def reap() -> None:
    """Enqueue whatever should be going on and is not; cheap, called every few seconds."""
    now = timezone.now()
    active = Session.objects.filter(status=Session.Status.ACTIVE, mode=Session.Mode.INTERACTIVE)

    unattended = Q(worker_at=None) | Q(worker_at__lt=now - preparing.WORKER_SILENT)
    for pk in _ids(Session.objects.filter(unattended, status=Session.Status.PREPARING)):
        jobs.soon(jobs.prepare, pk)

    for pk in _ids(active.exclude(outcome="").filter(unattended)):
        jobs.soon(jobs.close, pk)

    gone = active.filter(outcome="").exclude(lease__state=Lease.State.ACTIVE)
    for session in gone.select_related("lease"):
        recovery.lost(session, cause="the computer is gone")

    live = active.filter(outcome="")
    left = Step.objects.filter(
        session__in=live, state=Step.State.CHOSEN, created_at__lt=now - STEP_SILENT
    )
    for pk in _ids(left):
        jobs.soon(jobs.execute, pk)

    points = DecisionPoint.objects.filter(session__in=live)
    asleep = Q(started_at=None, requested_at__lt=now - RETRY_AFTER)
    asleep |= Q(started_at__lt=now - proposals.WORKER_SILENT)
    for pk in _ids(points.filter(asleep, status=DecisionPoint.Status.REQUESTED)):
        jobs.soon(jobs.propose, pk)
    failed = points.filter(
        status=DecisionPoint.Status.FAILED,
        attempts__lt=proposals.ATTEMPTS,
        ready_at__lt=now - RETRY_AFTER,
    )
    for point in failed.select_related("session"):
        proposals.retry(point)

    for session in live.filter(controller=Session.Controller.AGENT):
        proposals.ensure(session)

    for session in Session.objects.filter(
        status__in=Session.LIVE, mode=Session.Mode.INTERACTIVE, outcome="", expires_at__lt=now
    ):
        sessions.expire(session)


def _ids(rows: object) -> list[int]:
    return list(rows.values_list("pk", flat=True))
