"""Verbs of Review, and what a reviewed session teaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

import trajectory
from annotation import hints
from annotation.data import values
from annotation.errors import BadInput, NotYours, Refused
from annotation.models import Review, Session, Step, StepReview
from annotation.recordings import accepting
from annotation.session import fencing
from annotation.tasks import tasks
from trajectory import Actor, FormatError, Outcome, Trajectory

STATUS_AFTER = {
    Review.Verdict.ACCEPTED: Session.Status.ACCEPTED,
    Review.Verdict.CORRECTED: Session.Status.ACCEPTED,
    Review.Verdict.RETURNED: Session.Status.RETURNED,
    Review.Verdict.REJECTED: Session.Status.REJECTED,
}
NEED_REASONS = (Review.Verdict.RETURNED, Review.Verdict.REJECTED)


class NoTrajectory(Exception):
    """A session has nothing to learn from; the message says why."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A reviewer's word on one step; `thought` and `action` replace what was recorded."""

    step: int  # Step.index
    mark: str  # StepReview.Mark
    thought: str = ""
    action: dict[str, Any] | None = None
    comment: str = ""


def submit(
    session: Session,
    *,
    reviewer: User,
    verdict: str,
    reasons: str = "",
    marks: Sequence[Mark] = (),
) -> Review:
    """Judge a submitted session; raises NotYours for its author, Refused if it isn't submitted.

    RETURNED and REJECTED need reasons (BadInput); ACCEPTED with corrections becomes CORRECTED.
    """
    if verdict not in Review.Verdict.values:
        raise BadInput(f"verdict: must be one of {', '.join(Review.Verdict.values)}")
    if verdict in NEED_REASONS and not reasons.strip():
        raise BadInput("reasons: say why, so that the author can learn from it")
    corrects = any(mark.thought.strip() or mark.action is not None for mark in marks)
    if verdict == Review.Verdict.ACCEPTED and corrects:
        verdict = Review.Verdict.CORRECTED
    with transaction.atomic():
        row = fencing.hold(session)
        if row.author_id == reviewer.pk:
            raise NotYours("nobody reviews their own session")
        if row.status != Session.Status.SUBMITTED:
            raise Refused(
                f"this session is {row.get_status_display()}, it does not wait for review"
            )
        review = Review.objects.create(
            session=row, reviewer=reviewer, verdict=verdict, reasons=reasons.strip()
        )
        steps = {step.index: step for step in row.steps.all()}
        StepReview.objects.bulk_create(_checked(review, steps, mark) for mark in marks)
        row.status = STATUS_AFTER[Review.Verdict(verdict)]
        row.finished_at = row.finished_at or timezone.now()
        row.save(update_fields=["status", "finished_at"])
        tasks.settle(row.task)
        hints.changed(row.pk, "review")
        return review


def trajectory_of(session: Session) -> Trajectory:
    """Return what the session did, with the newest review's corrections in place.

    A step marked wrong stays in the context without loss, unless the reviewer corrected it; a
    redundant one likewise. The annotator is a pseudonym. Raises NoTrajectory.
    """
    rows = list(session.steps.exclude(state=Step.State.CHOSEN).select_related("decision__proposal"))
    if not rows:
        raise NoTrajectory(f"session {session.pk} has no steps")
    review = session.reviews.order_by("-pk").first()
    marks = {} if review is None else {mark.step_id: mark for mark in review.steps.all()}
    return Trajectory(
        id=f"session-{session.pk}",
        task=session.task.external_id,
        instruction=session.task.instruction,
        steps=tuple(_corrected(row, marks.get(row.pk)) for row in rows),
        outcome=Outcome(session.outcome) if session.outcome else None,
        reward=session.reward,
        annotator=session.pseudonym,
        source=session.mode,
        metadata={
            "domain": session.task.domain,
            "status": session.status,
            "verdict": review.verdict if review else "",
            **(accepting.said_in(session) if session.mode == Session.Mode.IN_SITU else {}),
        },
    )


def _checked(review: Review, steps: dict[int, Step], mark: Mark) -> StepReview:
    step = steps.get(mark.step)
    if step is None:
        raise BadInput(f"marks: there is no step {mark.step}")
    if mark.mark not in StepReview.Mark.values:
        raise BadInput(f"marks: step {mark.step} must be {', '.join(StepReview.Mark.values)}")
    if mark.action is not None:
        try:
            trajectory.action_from_dict(mark.action)
        except FormatError as error:
            raise BadInput(f"marks: step {mark.step}: {error}") from None
    return StepReview(
        review=review,
        step=step,
        mark=mark.mark,
        thought=mark.thought.strip(),
        action=mark.action,
        comment=mark.comment.strip(),
    )


def _corrected(row: Step, mark: StepReview | None) -> trajectory.Step:
    """Return a step as it should have been.

    What the policy sampled goes along only where it was done as sampled: trained on as is.
    """
    decision = getattr(row, "decision", None)
    proposal = decision.proposal if decision and decision.kind == decision.Kind.ACCEPTED else None
    step = values.step_value(row, sample=values.sample_value(proposal.sample) if proposal else None)
    if row.state == Step.State.FAILED:
        step = replace(step, trainable=False)
    if mark is None:
        return step
    corrected = mark.thought != "" or mark.action is not None
    if corrected:
        action = trajectory.action_from_dict(mark.action) if mark.action else step.action
        step = replace(
            step,
            thought=mark.thought or step.thought,
            action=action,
            actor=Actor.HUMAN if mark.action else step.actor,
            sample=None,
        )
    wrong = mark.mark == StepReview.Mark.WRONG and not mark.action
    if wrong or mark.mark == StepReview.Mark.REDUNDANT:
        step = replace(step, trainable=False)
    return step
