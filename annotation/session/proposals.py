"""Asking the policy: a decision point is opened, observed, and answered with k proposals."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

import trajectory
from agent import deployments
from agent.memory import Memory
from agent.policy import Candidate, PolicyError, PolicyRequest
from annotation import hints, storable
from annotation.data import values
from annotation.models import DecisionPoint, Proposal, Session, Step
from annotation.session import background, desktops, fencing, pictures, recovery, screens
from blobs import BlobError
from sandbox.provider import DesktopLost, SandboxError
from trajectory import Observation, action_to_dict, observation_to_dict

# A worker that has not answered by then is dead or hopeless; another one tries.
WORKER_SILENT = timedelta(seconds=60)
ATTEMPTS = 5

_uploads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="upload")


def open_point(session: Session, *, hint: str = "") -> DecisionPoint | None:
    """Open the next decision point of a held session; None if one is open already."""
    index = session.steps.count()
    try:
        with transaction.atomic():
            point = DecisionPoint.objects.create(session=session, index=index, hint=hint[:500])
    except IntegrityError:
        return None
    return point


def ask(session: Session, *, hint: str = "") -> DecisionPoint | None:
    """Open the next decision point of a held session and have it answered after the commit."""
    point = open_point(session, hint=hint)
    if point is not None:
        background.soon(propose, point.pk)
    return point


def propose(point_id: int) -> None:
    """Observe the desktop and ask the policy; does nothing if another worker is at it.

    A failure is named on the row; the reaper tries again up to ATTEMPTS times.
    """
    now = timezone.now()
    waiting = DecisionPoint.objects.filter(pk=point_id, status=DecisionPoint.Status.REQUESTED)
    waiting = waiting.filter(Q(started_at=None) | Q(started_at__lt=now - WORKER_SILENT))
    if not waiting.update(started_at=now, attempts=F("attempts") + 1):
        return
    point = DecisionPoint.objects.select_related(
        "session__task", "session__deployment", "session__lease__sandbox"
    ).get(pk=point_id)
    session = point.session
    # Whoever decides or gives up on this point meanwhile changes its status: then nothing is kept.
    mine = DecisionPoint.objects.filter(
        pk=point_id, status=DecisionPoint.Status.REQUESTED, started_at=now
    )
    try:
        with desktops.of(session) as desktop:
            frame = desktop.observe(elements=True)
    except DesktopLost as error:
        recovery.lost(session, cause=str(error))
        return
    except SandboxError as error:
        _fail(mine, session, f"the desktop could not be observed: {error}")
        return
    screenshot = pictures.remember(frame.png)
    upload = _uploads.submit(pictures.put, frame.png)  # while the policy thinks
    history = values.history(session)
    seen = screens.observation(frame, screenshot, tool_output=values.last_output(session))
    started = time.monotonic()
    candidates, failure = _answer(session, point, seen, history)
    model_ms = round((time.monotonic() - started) * 1000)
    try:
        upload.result()
    except BlobError as error:
        candidates, failure = [], f"the picture could not be stored: {error}"
    with transaction.atomic():
        done = mine.update(
            status=DecisionPoint.Status.FAILED if failure else DecisionPoint.Status.READY,
            error=storable.text(failure),
            observation=observation_to_dict(seen),
            screenshot=screenshot,
            model_ms=model_ms,
            ready_at=timezone.now(),
        )
        if not done:
            return
        point.proposals.all().delete()  # of an attempt that failed
        Proposal.objects.bulk_create(
            _row(point, rank, candidate) for rank, candidate in enumerate(candidates, start=1)
        )
        hints.changed(session.pk, "proposals")


def retry(point: DecisionPoint) -> None:
    """Ask again about a point that failed; does nothing if the session has moved on."""
    with transaction.atomic():
        session = fencing.hold(point.session)
        newest = session.decision_points.order_by("-pk").first()
        if newest != point or session.status != Session.Status.ACTIVE or session.outcome:
            return
        again = DecisionPoint.objects.filter(pk=point.pk, status=DecisionPoint.Status.FAILED)
        if again.update(status=DecisionPoint.Status.REQUESTED, started_at=None):
            background.soon(propose, point.pk)


def give_up(point: DecisionPoint) -> None:
    """Say of a point that ATTEMPTS workers have died over that nobody will answer it."""
    with transaction.atomic():
        asked = DecisionPoint.objects.filter(pk=point.pk, status=DecisionPoint.Status.REQUESTED)
        _fail(asked, point.session, f"asking the policy was broken off {point.attempts} times")


def ensure(session: Session) -> None:
    """Ask the policy if an active session waits for nothing and nobody: its worker died."""
    waiting = (
        DecisionPoint.Status.REQUESTED, DecisionPoint.Status.READY, DecisionPoint.Status.FAILED
    )  # fmt: skip
    with transaction.atomic():
        row = fencing.hold(session)
        newest = row.decision_points.order_by("-pk").first()
        if (
            row.status == Session.Status.ACTIVE
            and not row.outcome
            and row.controller == Session.Controller.AGENT
            and (newest is None or newest.status not in waiting)
            and not row.steps.filter(state=Step.State.CHOSEN).exists()
        ):
            ask(row)


def _answer(
    session: Session,
    point: DecisionPoint,
    seen: Observation,
    history: list[trajectory.Step],
) -> tuple[list[Candidate], str]:
    """Return the policy's candidates, and in words why they are of no use; "" if one is."""
    request = PolicyRequest(
        instruction=session.task.instruction,
        history=tuple(history),
        observation=seen,
        hint=point.hint,
    )
    try:
        deployment = session.deployment or deployments.partner()
        policy = deployments.policy(deployment, pictures=pictures.read)
        candidates = policy.propose(Memory().recall(request).request, deployment.candidates)
    except PolicyError as error:
        return [], str(error)
    except ValueError as error:  # the observation can't be rendered for this policy
        return [], f"nothing could be asked: {error}"
    if not candidates:
        return [], "the policy gave no answer"
    if not any(candidate.action for candidate in candidates):
        return candidates, f"no candidate could be read: {candidates[0].error}"
    return candidates, ""


def _row(point: DecisionPoint, rank: int, candidate: Candidate) -> Proposal:
    """Return the row of a candidate; what PostgreSQL would refuse of it costs this candidate only."""
    action = None if candidate.action is None else action_to_dict(candidate.action)
    sample = None if candidate.sample is None else values.sample_record(candidate.sample)
    refused = storable.wrong(action)
    return Proposal(
        decision_point=point,
        rank=rank,
        thought=storable.text(candidate.thought),
        action=None if refused else action,
        raw=storable.text(candidate.raw),
        error=storable.text(candidate.error) or refused,
        model_version=candidate.version,
        sample=None if storable.wrong(sample) else sample,
    )


def _fail(mine: QuerySet[DecisionPoint], session: Session, cause: str) -> None:
    with transaction.atomic():
        failed = DecisionPoint.Status.FAILED
        mine.update(status=failed, error=storable.text(cause), ready_at=timezone.now())
        hints.changed(session.pk, "proposals")
