"""Spoken words put in order by a model: nothing is added, and what was said stays beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.conf import settings

from agent import deployments
from agent.models import Deployment
from agent.policy import PolicyMisconfigured
from agent.rewards.chat import Chat
from annotation.models import Recording, RecordingStep
from annotation.session import pictures

ASK = """A person spoke their thoughts aloud while they used a computer. Below is what a speech engine heard \
beside one action. Write it as one to three clear sentences in the first person and in the same language, as \
the thought before the action. Correct what was misheard only where the action makes it certain. Leave out \
fillers and repetitions. Add no reason, no fact and no step that the person did not say. Answer with the \
sentences alone.

Task: {task}
Action: {action}
On: {element}
Heard: {heard}"""
LONGER = 2.0  # a thought that grew more than this has something in it that nobody said
ROOM = 80


def refine(recording: Recording, steps: Sequence[RecordingStep]) -> None:
    """Refine the spoken thoughts in place, where RECORDING_REFINER names a deployment.

    An answer that is empty or far longer than what was said is not taken. Raises PolicyError.
    """
    if not settings.RECORDING_REFINER:
        return
    deployment = Deployment.objects.filter(name=settings.RECORDING_REFINER).first()
    if deployment is None:
        raise PolicyMisconfigured(
            f"RECORDING_REFINER names {settings.RECORDING_REFINER!r}: there is no such deployment"
        )
    model = deployments.chat(deployment, pictures=pictures.read)
    for step in steps:
        if step.provenance == RecordingStep.Provenance.SPOKEN:
            _refine(recording, step, model)


def _refine(recording: Recording, step: RecordingStep, model: Chat) -> None:
    element = step.element or {}
    question = ASK.format(
        task=recording.instruction or recording.title or "free work",
        action=json.dumps(step.action, ensure_ascii=False)[:1000],
        element=f"{element.get('role', '')} {element.get('name', '')}".strip() or "unknown",
        heard=step.thought,
    )
    said = model.say([{"role": "user", "content": question}])
    text = " ".join(said.text.split())
    if text and len(text) <= LONGER * len(step.thought) + ROOM:
        step.thought = text
        step.provenance = RecordingStep.Provenance.REFINED
        step.model_version = said.version[:100]
