"""Verbs of judging a recording: two different reviewers, neither of them its contributor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from annotation import jobs
from annotation.errors import BadInput, NotYours, Refused
from annotation.models import Recording, RecordingReview, RecordingStep
from annotation.recordings import accepting, checks

NEEDED = 2
Verdict = RecordingReview.Verdict
Status = Recording.Status


@dataclass(frozen=True, slots=True)
class Fix:
    """What somebody changes about one step; None leaves it as it is."""

    index: int
    thought: str | None = None
    action: Mapping[str, Any] | None = None
    kept: bool | None = None

    def to_json(self) -> dict[str, Any]:
        values = {"thought": self.thought, "action": self.action, "kept": self.kept}
        return {"index": self.index} | {k: v for k, v in values.items() if v is not None}


def judge(
    recording: Recording,
    *,
    reviewer: User,
    verdict: str,
    reasons: str = "",
    fixes: Sequence[Fix] = (),
) -> Recording:
    """Take one reviewer's word; the second accepting one makes it a Session.

    Fixes are kept with the review and change the steps. Raises NotYours for the contributor, BadInput,
    and Refused for a recording that does not wait or that this reviewer has judged in this round.
    """
    if verdict not in Verdict.values:
        raise BadInput(f"verdict: must be one of {', '.join(Verdict.values)}")
    if verdict != Verdict.ACCEPTED and not reasons.strip():
        raise BadInput("reasons: say why, so that the contributor can learn from it")
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.owner_id == reviewer.pk:
            raise NotYours("nobody reviews their own recording")
        if row.status != Status.IN_REVIEW:
            raise Refused(
                f"this recording is {row.get_status_display()}, it does not wait for review"
            )
        here = RecordingReview.objects.filter(recording=row, round=row.round)
        if here.filter(reviewer=reviewer).exists():
            raise Refused("you have judged it: another reviewer has to")
        _apply(row, fixes)
        RecordingReview.objects.create(
            recording=row, reviewer=reviewer, round=row.round, verdict=verdict,
            reasons=reasons.strip()[:4000], fixes=[fix.to_json() for fix in fixes],
        )  # fmt: skip
        if verdict == Verdict.RETURNED:
            row.status = Status.RETURNED
        elif verdict == Verdict.REJECTED:
            row.status, row.ended_at = Status.REJECTED, timezone.now()
        elif here.filter(verdict=Verdict.ACCEPTED).values("reviewer").distinct().count() >= NEEDED:
            row.session = accepting.session_of(row)
            row.status, row.ended_at = Status.ACCEPTED, timezone.now()
            jobs.soon(jobs.reword_recording, row.pk)
        row.save(update_fields=["status", "ended_at", "session"])
        return row


def send_again(recording: Recording, *, by: User, fixes: Sequence[Fix] = ()) -> Recording:
    """Send a returned recording to its reviewers once more, with its contributor's corrections."""
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.owner_id != by.pk:
            raise NotYours("only its contributor sends it again")
        if row.status != Status.RETURNED:
            raise Refused(f"this recording is {row.get_status_display()}, it was not returned")
        if any(fix.action is not None for fix in fixes):
            raise BadInput("what was done can't be changed afterwards, only what is said about it")
        _apply(row, fixes)
        row.status, row.round = Status.IN_REVIEW, row.round + 1
        row.save(update_fields=["status", "round"])
        return row


def _apply(row: Recording, fixes: Sequence[Fix]) -> None:
    steps = {step.index: step for step in row.steps.all()}
    for fix in fixes:
        step = steps.get(fix.index)
        if step is None:
            raise BadInput(f"there is no step {fix.index + 1}")
        if fix.thought is not None and fix.thought.strip() != step.thought:
            step.thought = fix.thought.strip()[:20_000]
            step.provenance = RecordingStep.Provenance.TYPED if step.thought else ""
            step.model_version = ""
        if fix.action is not None:
            step.action = dict(fix.action)
            frame = (step.width, step.height) if step.screenshot else None
            # The person corrects where the hand missed: the element is what it missed.
            step.problem = checks.problem(step.action, frame=frame, element=None)
            if step.problem:
                raise BadInput(f"step {fix.index + 1}: {step.problem}")
            step.kept = True
        if fix.kept is not None:
            if fix.kept and step.problem:
                raise BadInput(f"step {fix.index + 1} can't be kept: {step.problem}")
            step.kept = fix.kept
        step.save(
            update_fields=["thought", "provenance", "model_version", "action", "problem", "kept"]
        )
