"""Getting a session to its first decision: a computer, the task's starting state, what was done."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone

from annotation import hints
from annotation.models import Session, Step
from annotation.session import (
    desktops,
    endings,
    fencing,
    pictures,
    proposals,
    screens,
    steps,
    takeover,
)
from annotation.tasks import tasks
from blobs.store import BlobError, Damaged, MissingBlob
from sandbox import setups
from sandbox.leasing import leases
from sandbox.models import Lease
from sandbox.provider import ActionFailed, Desktop, SandboxError
from trajectory import AskUser, action_from_dict, is_terminal

log = logging.getLogger(__name__)

# Setting up takes seconds; a worker that has said nothing for so long is dead.
WORKER_SILENT = timedelta(seconds=60)
COMPUTERS = 6  # for one session, before its environment counts as broken
REPLAYS = uuid.UUID("8d1f4b52-6f0e-4a55-9f3e-7f5f3f6f1c11")  # namespace of replayed action ids


class Diverged(Exception):
    """A replayed step does not find the screen that it was decided on."""


def prepare(session_id: int) -> None:
    """Lease a computer, set the task up, replay what was done, and open the next decision.

    Does nothing if another worker is at it. No free computer: the row says so and waits for the
    reaper. A computer that breaks is replaced, COMPUTERS in all, then the session has failed.
    """
    now = timezone.now()
    rows = Session.objects.filter(pk=session_id, status=Session.Status.PREPARING)
    rows = rows.filter(Q(worker_at=None) | Q(worker_at__lt=now - WORKER_SILENT))
    if not rows.update(worker_at=now):
        return
    session = _settled(session_id)
    try:
        lease = _leased(session)
        if lease is None:
            return
        with desktops.of(session) as desktop:
            _say(session, "setting the task up")
            setups.set_up(desktop, session.task.setup, epoch=lease.epoch)
            desktop.settle()
            _replay(session, desktop, lease)
    except (Diverged, leases.PoolRefuses) as cause:
        _fail(session, str(cause))
    except SandboxError as error:
        _again(session, str(error))
    except (BlobError, DatabaseError):  # of services, not of this session: the reaper tries again
        raise
    except Exception as error:  # whatever a task's setup trips over: not for ever
        log.exception("session %s could not be prepared", session.pk)
        _again(session, f"preparing failed: {error!r}")
    else:
        _begin(session)


def _settled(session_id: int) -> Session:
    """Return the session with the input of a takeover on a lost computer turned into steps."""
    with transaction.atomic():
        session = fencing.hold(Session(pk=session_id))
        takeover.absorb(session)
        return session


def _leased(session: Session) -> Lease | None:
    """Lease a computer for this attempt; None (and the row waits) if none is free."""
    _say(session, "waiting for a desktop")
    try:
        lease = leases.acquire(
            owner=session.author,
            purpose=Lease.Purpose.HUMAN,
            pool=session.task.pool or None,
            idempotency_key=f"session-{session.pk}-{session.preparations}",
            ttl=desktops.TTL,
        )
    except leases.NoCapacity as full:
        _say(session, f"waiting for a free desktop: {full}", waiting=True)
        return None
    if lease.state != Lease.State.ACTIVE:  # of an earlier worker, and gone since
        _again(session, "the desktop was lost while it was set up")
        return None
    mine = Session.objects.filter(
        pk=session.pk, status=Session.Status.PREPARING, preparations=session.preparations
    )
    if not mine.update(lease=lease, input_seq=0):  # skipped, or expired, while we waited
        if not Session.objects.filter(pk=session.pk, lease=lease, status__in=Session.LIVE).exists():
            leases.release(lease, reason="the session ended while it was prepared")
        return None
    session.lease, session.input_seq = lease, 0
    return lease


def _replay(session: Session, desktop: Desktop, lease: Lease) -> None:
    """Do again on a fresh computer what was done on the lost one; raises Diverged."""
    done = session.steps.filter(state=Step.State.EXECUTED).order_by("index")
    for number, step in enumerate(done, start=1):
        action = action_from_dict(step.action)
        if is_terminal(action) or isinstance(action, AskUser):
            continue
        _say(session, f"replaying step {number} of {len(done)}")
        places = screens.places(action)
        if places and step.screenshot:
            now = desktop.observe().png
            if screens.changed(_picture(step, number), now, places):
                raise Diverged(
                    f"on the new desktop step {number} does not find the screen that it was "
                    "decided on; everything decided is kept, start the task afresh"
                )
        action_id = uuid.uuid5(REPLAYS, f"{step.action_id}/{lease.pk}").hex
        try:
            desktop.perform(action, epoch=lease.epoch, action_id=action_id)
        except ActionFailed as failure:
            raise Diverged(f"step {number} can't be replayed: {failure}") from failure
        desktop.settle()


def _picture(step: Step, number: int) -> bytes:
    try:
        return pictures.read(step.screenshot)
    except (MissingBlob, Damaged) as gone:
        raise Diverged(f"the picture of step {number} is gone: {gone}") from gone


def _begin(session: Session) -> None:
    """Make the session active and go on where it stood."""
    with transaction.atomic():
        row = fencing.hold(session)
        if row.status != Session.Status.PREPARING:
            return
        row.status = Session.Status.ACTIVE
        row.stage, row.error, row.worker_at = "", "", None
        row.save(update_fields=["status", "stage", "error", "worker_at"])
        chosen = row.steps.filter(state=Step.State.CHOSEN).first()
        point = None if chosen else proposals.open_point(row)
        hints.changed(row.pk, "session")
    if chosen is not None:
        steps.execute(chosen.pk)
    elif point is not None:
        proposals.propose(point.pk)


def _again(session: Session, cause: str) -> None:
    """Give a broken computer back and let the reaper try another; fail after COMPUTERS."""
    if session.lease is not None:
        desktops.forget(session.lease)
        leases.lose(session.lease, cause=cause)
    tried = session.preparations + 1
    mine = Session.objects.filter(
        pk=session.pk, status=Session.Status.PREPARING, preparations=session.preparations
    )
    if not mine.update(preparations=tried, error=cause):
        return  # it ended meanwhile, or goes on without us
    if tried >= COMPUTERS:
        _fail(session, cause)
    else:
        _say(session, "the desktop broke: preparing another", waiting=True)


def _fail(session: Session, cause: str) -> None:
    with transaction.atomic():
        row = fencing.hold(session)
        if row.status != Session.Status.PREPARING:
            return
        row.status = Session.Status.FAILED
        row.outcome = "env_failure"
        row.error, row.stage, row.worker_at = cause, "", None
        row.finished_at = timezone.now()
        row.save(update_fields=["status", "outcome", "error", "stage", "worker_at", "finished_at"])
        tasks.settle(row.task)
        hints.changed(row.pk, "session")
    endings.give_back(session, reason="the session failed")


def _say(session: Session, stage: str, *, waiting: bool = False) -> None:
    """Tell the page what is going on; `waiting` lets another worker take over at once."""
    worker_at = None if waiting else timezone.now()
    Session.objects.filter(pk=session.pk).update(stage=stage[:100], worker_at=worker_at)
    hints.changed(session.pk, "session")
