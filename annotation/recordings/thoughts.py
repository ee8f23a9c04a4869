"""The thoughts of an accepted recording as training data may want them: without those that a model
made up, and once more in other words. Originals are never changed."""

from __future__ import annotations

from dataclasses import replace

from annotation.models import RecordingStep, Rewording, Session
from annotation.recordings.accepting import NO_THOUGHT
from trajectory import Trajectory

SYNTHESIZED = str(RecordingStep.Provenance.SYNTHESIZED)
REWORDED = "reworded"


def without_synthesized(found: Trajectory) -> Trajectory:
    """Return a trajectory whose synthesized thoughts are left out; its steps stay."""
    words = found.metadata.get("thoughts", "").split()
    if SYNTHESIZED not in words:
        return found
    steps = tuple(
        replace(step, thought="") if word == SYNTHESIZED else step
        for step, word in zip(found.steps, words, strict=True)
    )
    left = [NO_THOUGHT if word == SYNTHESIZED else word for word in words]
    return replace(found, steps=steps, metadata={**found.metadata, "thoughts": " ".join(left)})


def reworded(session: Session, found: Trajectory) -> tuple[Trajectory, int] | None:
    """Return `found`, the session's trajectory, in other words, and how many thoughts that is.

    None where no thought of it has a rewording. It is a sample of its own: its metadata says
    `augmented`, and whose `origin` it is. Steps in the old words are context and get no loss.
    """
    words = found.metadata.get("thoughts", "").split()
    rows = Rewording.objects.filter(step__recording__session=session, step__kept=True)
    texts = {row.step_id: row for row in rows.order_by("-pk")}  # the first of a step stays
    if not texts:
        return None
    kept = RecordingStep.objects.filter(recording__session=session, kept=True)
    steps, by = list(found.steps), set()
    for at, pk in enumerate(kept.order_by("index").values_list("pk", flat=True)):
        row = texts.get(pk)
        if row is None or not steps[at].thought:
            steps[at] = replace(steps[at], trainable=False)
            continue
        steps[at] = replace(steps[at], thought=row.text, sample=None)
        words[at] = REWORDED
        by.add(row.model_version)
    metadata = {
        **found.metadata,
        "thoughts": " ".join(words),
        "augmented": REWORDED,
        "origin": found.id,
        "reworded_by": ", ".join(sorted(by)),
    }
    count = words.count(REWORDED)
    if not count:
        return None
    other = replace(found, id=f"{found.id}-{REWORDED}", steps=tuple(steps), metadata=metadata)
    return other, count


def origin_of(found: Trajectory) -> str:
    """Return what a split of learning and held-out data has to keep together: the original's id."""
    return found.metadata.get("origin") or found.id
