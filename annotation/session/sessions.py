"""Verbs of Session: start, keep alive, take up again, keep drafts, end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from agent.models import Deployment
from annotation import hints, jobs
from annotation.data import pseudonyms
from annotation.errors import BadInput, MissingThoughts, NotYours
from annotation.models import Decision, Session, Skip, Step, Task
from annotation.session import background, desktops, endings, fencing, recovery, steps, takeover
from annotation.tasks import tasks
from sandbox.leasing import leases
from trajectory import Action, Actor, Fail, Finish, Outcome, action_from_dict, is_terminal

# How long an author may be silent (the page beats every 20 s) and still find desktop and task.
GRACE = timedelta(seconds=120)  # shorter than desktops.TTL


def start(*, user: User) -> Session:
    """Return the user's live session, or claim a task and open one; raises NoTask.

    A task on which the user's earlier session expired is taken up where it was left.
    """
    try:
        with transaction.atomic():
            if (session := live_of(user)) is not None:
                return session
            task = tasks.claim(user=user)
            # One that is locked is being resumed at this moment, by somebody who waits for the task.
            mine = task.sessions.select_for_update(skip_locked=True, of=("self",))
            left = mine.filter(author=user, status=Session.Status.EXPIRED, outcome="").first()
            session = _reopen(left) if left else _open(task, user)
            tasks.settle(task)
            jobs.soon(jobs.prepare, session.pk)
            return session
    except IntegrityError:  # a second request of the same user was quicker
        session = live_of(user)
        if session is None:
            raise
        return session


def live_of(user: User) -> Session | None:
    """Return the user's session that is under way."""
    return Session.objects.filter(
        author=user, mode=Session.Mode.INTERACTIVE, status__in=Session.LIVE
    ).first()


def heartbeat(session: Session, *, fence: int) -> Session:
    """Say that the author is still there (every 20 s); raises StaleFence."""
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        if row.status not in Session.LIVE:
            return row
        _beat(row)
        lease = row.lease
    if row.status == Session.Status.ACTIVE and lease is not None:
        try:
            leases.renew(lease, ttl=desktops.TTL)
        except leases.LeaseOver as gone:
            recovery.lost(row, cause=str(gone))
            row.refresh_from_db()
    return row


def resume(session: Session, *, by: User) -> Session:
    """Take a live or expired session up again; `fence` is new, so that another page's is old.

    Within the grace time the desktop is the same. An expired session gets a new one, on which what
    was done is replayed. Raises NotYours.
    """
    try:
        return _resumed(session, by)
    except IntegrityError:  # a second request of the same author was quicker
        raise NotYours("another session of yours is under way: finish it first") from None


def _resumed(session: Session, by: User) -> Session:
    with transaction.atomic():
        row = fencing.hold(session)
        if row.author_id != by.pk:
            raise NotYours("only the author may take a session up again")
        if row.status in Session.LIVE:
            row.fence += 1
            row.save(update_fields=["fence"])
            _beat(row)
            return row
        if row.status != Session.Status.EXPIRED or row.outcome:
            raise NotYours(
                f"this session is {row.get_status_display()}: it can't be taken up again"
            )
        other = live_of(by)
        if other is not None:
            raise NotYours(f"finish session {other.pk} first")
        task = Task.objects.select_for_update().get(pk=row.task_id)
        if task.state != Task.State.OPEN:
            raise NotYours("the task was given to somebody else meanwhile")
        _reopen(row)
        tasks.settle(task)
        jobs.soon(jobs.prepare, row.pk)
        hints.changed(row.pk, "session")
        return row


def save_draft(session: Session, *, fence: int, draft: dict[str, Any]) -> Session:
    """Keep what is being typed; an old fence is refused (StaleFence) but its text is kept."""
    fencing.keep_draft(session, draft)
    with transaction.atomic():
        return fencing.hold(session, fence=fence)


def finish(
    session: Session,
    *,
    fence: int,
    by: User,
    outcome: Outcome,
    thought: str = "",
    answer: str = "",
    report: str = "",
) -> Session:
    """End the session: FINISHED (answer), or FAILED for infeasible (report says why).

    Control is handed back and a last step says so. Raises StaleFence, Busy, MissingThoughts,
    BadInput. Verifying goes on in the background: the page sees status `submitted` with `reward`
    and `verdict_detail`.
    """
    if outcome not in (Outcome.FINISHED, Outcome.FAILED):
        raise BadInput(f"outcome: {outcome!r} is not for a person to choose")
    if outcome == Outcome.FAILED and not report.strip():
        raise BadInput("report: say why the task can't be done")
    action: Action = Finish(answer) if outcome == Outcome.FINISHED else Fail(report)
    with transaction.atomic():  # what the hand did stays, whatever is refused below
        row = fencing.hold(session, fence=fence)
        fencing.active(row)
        takeover.absorb(row)
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        fencing.active(row)
        steps.nothing_chosen(row)
        if missing := steps.missing_thoughts(row):
            raise MissingThoughts([step.index for step in missing])
        _last_step(row, action, by=by, thought=thought)
        endings.begin(row, outcome=outcome, answer=answer, report=report)
        background.soon(endings.close, row.pk)
        return row


def skip(session: Session, *, fence: int, by: User, reason: str) -> Session:
    """Give the task back unfinished; it is not offered to the author again."""
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        tasks.skip(row.task, user=by, reason=reason)
        _stop(row, status=Session.Status.EXPIRED, outcome=Outcome.ABANDONED, report=reason)
    endings.give_back(row, reason="skipped")
    return row


def report_broken(session: Session, *, fence: int, by: User, report: str) -> Session:
    """Say that the task itself is broken: the session ends, the task is retired."""
    if not report.strip():
        raise BadInput("report: say what is wrong with the task")
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        Skip.objects.get_or_create(task=row.task, user=by, defaults={"reason": report[:500]})
        _stop(row, status=Session.Status.FAILED, outcome=Outcome.ENV_FAILURE, report=report)
        tasks.retire(row.task)
    endings.give_back(row, reason="task reported as broken")
    return row


def expire(session: Session) -> Session:
    """End a session whose author went away; steps, drafts and the hand's input are kept."""
    with transaction.atomic():
        row = fencing.hold(session)
        if row.status not in Session.LIVE or row.outcome or row.expires_at > timezone.now():
            return row
        _stop(row, status=Session.Status.EXPIRED, outcome="", report="")
    endings.give_back(row, reason="the author went away")
    return row


def resubmit(session: Session, *, by: User) -> Session:
    """Send a returned session to review again; raises NotYours, MissingThoughts."""
    with transaction.atomic():
        row = fencing.hold(session)
        if row.author_id != by.pk or row.status != Session.Status.RETURNED:
            raise NotYours("only its author may send a returned session to review again")
        if missing := steps.missing_thoughts(row):
            raise MissingThoughts([step.index for step in missing])
        row.status = Session.Status.SUBMITTED
        row.finished_at = timezone.now()
        row.save(update_fields=["status", "finished_at"])
        hints.changed(row.pk, "review")
        return row


def _open(task: Task, user: User) -> Session:
    return Session.objects.create(
        task=task,
        author=user,
        pseudonym=pseudonyms.of(user),
        deployment=Deployment.objects.filter(is_partner=True).first(),
        expires_at=timezone.now() + GRACE,
        stage="waiting for a desktop",
    )


def _reopen(session: Session) -> Session:
    """Set an expired session, its row held, to preparing on another computer."""
    session.status = Session.Status.PREPARING
    session.stage = "waiting for a desktop"
    session.fence += 1
    session.preparations += 1
    session.worker_at = None
    session.save(update_fields=["status", "stage", "fence", "preparations", "worker_at"])
    _beat(session)
    return session


def _beat(session: Session) -> None:
    now = timezone.now()
    session.heartbeat_at, session.expires_at = now, now + GRACE
    session.save(update_fields=["heartbeat_at", "expires_at"])


def _stop(session: Session, *, status: str, outcome: str, report: str) -> None:
    """End a held live session without a verdict."""
    if session.status not in Session.LIVE or session.outcome:
        raise NotYours("this session has ended: reload the page")
    takeover.absorb(session)
    endings.stale_open(session)
    session.status, session.outcome, session.report = status, outcome, report
    session.stage, session.worker_at = "", None
    session.fence += 1
    session.finished_at = timezone.now()
    session.save(
        update_fields=[
            "status", "outcome", "report", "stage", "worker_at", "fence", "finished_at",
        ]
    )  # fmt: skip
    tasks.settle(session.task)
    hints.changed(session.pk, "session")


def _last_step(session: Session, action: Action, *, by: User, thought: str) -> None:
    """Let the trajectory of a held session end with a terminal action."""
    newest = session.steps.order_by("-index").first()
    if newest is not None and is_terminal(action_from_dict(newest.action)):
        return
    observation, screenshot = steps.observed(session)
    step = steps.append(
        session,
        observation=observation,
        screenshot=screenshot,
        thought=thought,
        action=action,
        actor=Actor.HUMAN,
        state=Step.State.CHOSEN,
    )
    Decision.objects.create(step=step, kind=Decision.Kind.OVERRIDDEN, by=by)
