"""Linguistic augmentation: thoughts in other words, by a model, in rows of their own.

Nothing of it ever stands where a person's words stand: originals, their export and their training
data stay as they are.
"""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from agent import deployments
from agent.models import Deployment
from annotation.models import Recording, Rewording
from annotation.session import pictures

ASK = """Say the following thought of somebody who uses a computer in other words: same meaning, same language, \
first person, about as long. Answer with the sentence alone.

{thought}"""


def reword(recording_id: int) -> int:
    """Write one rewording for every kept thought that has none; returns how many.

    Without RECORDING_REFINER, and for a recording that is not accepted, there is nothing to do. Raises
    PolicyError; what was written before it stays.
    """
    row = Recording.objects.filter(pk=recording_id, status=Recording.Status.ACCEPTED).first()
    deployment = Deployment.objects.filter(name=settings.RECORDING_REFINER or None).first()
    if row is None or deployment is None:
        return 0
    model = deployments.chat(deployment, pictures=pictures.read)
    count = 0
    for step in row.steps.filter(kept=True, rewordings=None).exclude(thought=""):
        said = model.say([{"role": "user", "content": ASK.format(thought=step.thought)}])
        text = " ".join(said.text.split())
        if not text or text == step.thought:
            continue
        with transaction.atomic():
            held = type(step).objects.select_for_update().filter(pk=step.pk).first()
            if held is None:  # withdrawn in the meantime
                return count
            if not held.rewordings.exists():
                Rewording.objects.create(step=held, text=text, model_version=said.version[:100])
                count += 1
    return count
