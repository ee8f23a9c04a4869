"""An accepted recording as a Session: from here on it is frozen, exported and erased like any other."""

from __future__ import annotations

import trajectory
from annotation.data import pseudonyms
from annotation.errors import Refused
from annotation.models import (
    Recording,
    RecordingStep,
    Review,
    Session,
    Step,
    Task,
)
from trajectory import Actor, Element, FormatError, Observation, Outcome

NO_THOUGHT = "none"


def session_of(recording: Recording) -> Session:
    """Make the Session of a recording that two reviewers accepted; in the caller's transaction.

    Steps that were left out are not in it; who said what stays with the recording. Raises Refused
    where no step is left.
    """
    kept = list(recording.steps.filter(kept=True))
    if not kept:
        raise Refused("no step of it is kept: reject it, or keep some")
    session = Session.objects.create(
        task=recording.task or _own_task(recording), mode=Session.Mode.IN_SITU,
        author=recording.owner, pseudonym=pseudonyms.of(recording.owner),
        status=Session.Status.ACCEPTED, controller=Session.Controller.HUMAN,
        outcome=Outcome.FINISHED.value, expires_at=recording.confirmed_at,
        finished_at=recording.confirmed_at,
    )  # fmt: skip
    Step.objects.bulk_create(_step(recording, session, at, row) for at, row in enumerate(kept))
    for review in recording.reviews.filter(round=recording.round):
        Review.objects.create(
            session=session, reviewer=review.reviewer, reasons=review.reasons,
            verdict=Review.Verdict.CORRECTED if review.fixes else Review.Verdict.ACCEPTED,
        )  # fmt: skip
    return session


def said_in(session: Session) -> dict[str, str]:
    """Return what a trajectory's metadata says of a recording: its kind, and whose each thought is.

    `thoughts` has one word per step, in order: spoken, typed, refined, synthesized or none.
    """
    recording = Recording.objects.filter(session=session).first()
    if recording is None:
        return {}
    whose = recording.steps.filter(kept=True).values_list("provenance", flat=True)
    return {
        "kind": recording.kind,
        "thoughts": " ".join(provenance or NO_THOUGHT for provenance in whose),
    }


def _own_task(recording: Recording) -> Task:
    """Return the task of work that its contributor chose: out of every queue."""
    row, _ = Task.objects.get_or_create(
        external_id=f"recording/{recording.name}",
        defaults={
            "instruction": recording.instruction or recording.title or "Work of one's own choice.",
            "domain": "in-situ",
            "recorded_as": recording.kind,
            "state": Task.State.RETIRED,
        },
    )
    return row


def _step(recording: Recording, session: Session, at: int, row: RecordingStep) -> Step:
    observation = Observation(
        screenshot=row.screenshot,
        width=row.width,
        height=row.height,
        elements=_elements(row),
        url=str(row.window.get("url") or ""),
        captured_at=float(recording.about.get("wall_start") or 0.0) + row.began,
    )
    try:
        action = trajectory.action_from_dict(row.action)
    except FormatError as error:
        raise Refused(f"step {row.index + 1} has no action: {error}") from None
    return Step(
        session=session, index=at, observation=trajectory.observation_to_dict(observation),
        screenshot=row.screenshot, thought=row.thought, action=trajectory.action_to_dict(action),
        actor=Actor.HUMAN.value, model_version="", action_id=f"rec-{recording.name}-{row.index}",
        state=Step.State.EXECUTED,
    )  # fmt: skip


def _elements(row: RecordingStep) -> tuple[Element, ...] | None:
    """Return the one element that was seen, where one was."""
    bounds = (row.element or {}).get("bounds")
    if not bounds:
        return None
    element = row.element or {}
    return (Element(str(element.get("role")), str(element.get("name")), tuple(bounds)),)
