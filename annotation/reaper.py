"""Put right what dead processes left: the rows say what is missing, and the verbs may run twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from annotation import jobs
from annotation.models import DecisionPoint, Session, Step
from annotation.session import preparing, proposals, recovery, sessions
from sandbox.models import Lease

log = logging.getLogger(__name__)

# A decision is done within a second or two, and the time that it asks for; older ones were left by
# a dead process.
STEP_SILENT = timedelta(seconds=15)
RETRY_AFTER = timedelta(seconds=5)
GONE = "the computer is gone"
LONGEST_STEP_MS = 600_000  # what a guest allows a command


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
    _each(gone.select_related("lease"), lambda row: recovery.lost(row, cause=GONE))

    live = active.filter(outcome="")
    left = Step.objects.filter(
        session__in=live, state=Step.State.CHOSEN, created_at__lt=now - STEP_SILENT
    )
    for pk, action, chosen_at in left.values_list("pk", "action", "created_at"):
        if chosen_at + STEP_SILENT + _lasts(action) < now:
            jobs.soon(jobs.execute, pk)

    points = DecisionPoint.objects.filter(session__in=live)
    asleep = Q(started_at=None, requested_at__lt=now - RETRY_AFTER)
    asleep |= Q(started_at__lt=now - proposals.WORKER_SILENT)
    asked = points.filter(asleep, status=DecisionPoint.Status.REQUESTED)
    for pk in _ids(asked.filter(attempts__lt=proposals.ATTEMPTS)):
        jobs.soon(jobs.propose, pk)
    hopeless = asked.filter(attempts__gte=proposals.ATTEMPTS)
    _each(hopeless.select_related("session"), proposals.give_up)
    failed = points.filter(
        status=DecisionPoint.Status.FAILED,
        attempts__lt=proposals.ATTEMPTS,
        ready_at__lt=now - RETRY_AFTER,
    )
    _each(failed.select_related("session"), proposals.retry)

    _each(live.filter(controller=Session.Controller.AGENT), proposals.ensure)

    left_alone = Session.objects.filter(
        status__in=Session.LIVE, mode=Session.Mode.INTERACTIVE, outcome="", expires_at__lt=now
    )
    _each(left_alone, sessions.expire)


def _each(rows: Iterable[Any], verb: Callable[[Any], object]) -> None:
    """Call `verb` for every row; one that can't be put right does not hold up the others."""
    for row in rows:
        try:
            verb(row)
        except Exception:  # whatever is wrong with this row: the next look tries it again
            log.exception("%s could not be put right", row)


def _lasts(action: dict[str, Any]) -> timedelta:
    """Return how long a recorded action may take by itself: a wait, a command."""
    asked = action.get("duration_ms", 0) + action.get("timeout_ms", 0)
    return timedelta(milliseconds=min(asked, LONGEST_STEP_MS))


def _ids(rows: Any) -> list[int]:
    return list(rows.values_list("pk", flat=True))
