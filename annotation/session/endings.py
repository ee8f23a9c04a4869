"""How a session ends: verified on its desktop, submitted, and its computer given back.

Two halves, so that a kill between them loses nothing: `begin` writes down that the session is
ending (status active, outcome set), `close` does the rest and may run again.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from annotation import hints, storable
from annotation.models import DecisionPoint, Session, Step
from annotation.session import desktops, fencing
from annotation.tasks import tasks
from sandbox import setups
from sandbox.leasing import leases
from sandbox.provider import SandboxError
from trajectory import Action, Fail, Finish, Outcome

log = logging.getLogger(__name__)

WORKER_SILENT = timedelta(seconds=45)


def begin(session: Session, *, outcome: Outcome, answer: str = "", report: str = "") -> None:
    """Write down how a held session ends; the caller has its lock and calls `close` afterwards."""
    session.outcome = outcome
    session.answer = answer
    session.report = report
    session.stage = "verifying"
    session.worker_at = None
    session.save(update_fields=["outcome", "answer", "report", "stage", "worker_at"])
    stale_open(session)
    hints.changed(session.pk, "session")


def begin_by(session: Session, action: Action) -> None:
    """Begin the ending that a terminal action asks for."""
    match action:
        case Finish(answer=answer):
            begin(session, outcome=Outcome.FINISHED, answer=answer)
        case Fail(reason=reason):
            begin(session, outcome=Outcome.FAILED, report=reason)


def stale_open(session: Session) -> None:
    """Close whatever the policy was asked or has answered: nobody will decide it."""
    session.decision_points.filter(
        status__in=[DecisionPoint.Status.REQUESTED, DecisionPoint.Status.READY]
    ).update(status=DecisionPoint.Status.STALE)


def close(session_id: int) -> None:
    """Verify and submit a session that is ending; does nothing if another worker is at it."""
    now = timezone.now()
    free = Session.objects.filter(pk=session_id, status=Session.Status.ACTIVE).exclude(outcome="")
    waiting = free.filter(worker_at=None) | free.filter(worker_at__lt=now - WORKER_SILENT)
    if not waiting.update(worker_at=now):
        return
    session = Session.objects.select_related("task", "lease__sandbox").get(pk=session_id)
    reward, detail = _verdict(session)
    with transaction.atomic():
        session = fencing.hold(session)
        if session.status != Session.Status.ACTIVE:
            return
        session.status = Session.Status.SUBMITTED
        session.stage = ""
        session.worker_at = None
        session.reward = reward
        session.verdict_detail = detail
        session.finished_at = timezone.now()
        session.save(
            update_fields=[
                "status", "stage", "worker_at", "reward", "verdict_detail", "finished_at",
            ]
        )  # fmt: skip
        session.steps.filter(state=Step.State.CHOSEN).update(
            state=Step.State.EXECUTED, executed_at=timezone.now()
        )
        tasks.settle(session.task)
        hints.changed(session.pk, "session")
    give_back(session, reason="submitted")


def give_back(session: Session, *, reason: str) -> None:
    """Release the session's computer; fine if it has none or it is gone already."""
    if session.lease is not None:
        desktops.forget(session.lease)
        leases.release(session.lease, reason=reason)


def _verdict(session: Session) -> tuple[float | None, str]:
    """Return the verifier's reward and what it says; None where nothing can be said."""
    if session.outcome not in (Outcome.FINISHED, Outcome.FAILED):
        return None, "not verified: the task was not finished"
    if not session.task.verifier:
        return None, "this task has no verifier"
    # Only a family knows tasks that can't be done; elsewhere giving up is a reviewer's matter.
    gave_up = session.outcome == Outcome.FAILED
    if gave_up and session.task.verifier.get("kind") != "family":
        return None, "not verified: the task was not finished"
    try:
        with desktops.of(session) as desktop:
            verdict = setups.verify(
                desktop, session.task.verifier, answer=session.answer, gave_up=gave_up
            )
    except SandboxError as error:
        return None, f"not verified: {error}"
    except Exception as error:  # whatever a verifier trips over: its author must not wait for ever
        log.exception("the verifier of task %s failed", session.task.external_id)
        return None, f"not verified: the verifier failed: {error!r}"
    return verdict.reward, storable.text(verdict.detail)
