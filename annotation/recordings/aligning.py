"""Stage three: which words belong to which action, and what thought each action gets of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db import transaction

import trajectory
from annotation.models import Recording, RecordingStep, Utterance
from annotation.recordings import checks, refinement, synthesis
from annotation.recordings.acts import Act, Spoken
from annotation.recordings.alignment import align as solve
from trajectory import FormatError, Wait

Provenance = RecordingStep.Provenance
SURE = 0.35  # less, and nobody can say which action was meant: the reviewers decide


def align(recording: Recording) -> None:
    """Give every step its thought, by a model where one is set for that, and send it to its reviewers.

    The same actions for the same task by the same contributor are rejected as a duplicate.
    """
    steps = list(recording.steps.all())
    said = list(recording.utterances.all())
    pairs = solve(
        [Spoken(one.began, one.ended, one.text) for one in said], [_act(step) for step in steps]
    )
    words: dict[int, list[Utterance]] = defaultdict(list)
    for one, pair in zip(said, pairs, strict=True):
        one.fit = pair.fit
        one.step = None if pair.act is None else steps[pair.act]
        if pair.act is not None and pair.fit >= SURE:
            words[pair.act].append(one)
    for at, step in enumerate(steps):
        _think(step, words[at])
    refinement.refine(recording, steps)
    synthesis.synthesize(recording, steps)
    found = checks.fingerprint(
        recording.owner_id,
        recording.task.external_id if recording.task else recording.instruction,
        [step.action for step in steps],
    )
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.status != Recording.Status.ALIGNING:
            return
        Utterance.objects.bulk_update(said, ["step", "fit"], batch_size=500)
        RecordingStep.objects.bulk_update(
            steps, ["thought", "provenance", "model_version", "unthought"], batch_size=500
        )
        row.fingerprint, row.cause = found, ""
        twin = _twin(row)
        if twin is None:
            row.status = Recording.Status.IN_REVIEW
        else:
            row.status = Recording.Status.REJECTED
            row.cause = f"the same actions for the same task as {twin}: nothing new to learn"
        row.save(update_fields=["fingerprint", "cause", "status"])


def _twin(row: Recording) -> Recording | None:
    gone = (Recording.Status.FAILED, Recording.Status.REJECTED, Recording.Status.WITHDRAWN)
    same = Recording.objects.filter(fingerprint=row.fingerprint, owner=row.owner_id)
    return same.exclude(pk=row.pk).exclude(status__in=gone).order_by("pk").first()


def _think(step: RecordingStep, words: Sequence[Utterance]) -> None:
    step.thought = " ".join(one.text for one in words)
    step.model_version = step.unthought = ""
    if not words:
        step.provenance = Provenance.NONE
    elif any(one.by == "person" for one in words):
        step.provenance = Provenance.TYPED
    else:
        step.provenance = Provenance.SPOKEN


def _act(step: RecordingStep) -> Act:
    element = step.element or {}
    named = f"{element.get('role', '')} {element.get('name', '')}".strip()
    try:
        action = trajectory.action_from_dict(step.action)
    except FormatError:
        action = Wait()  # it was done all the same, and people spoke about it
    return Act(step.began, step.ended, action, named)
