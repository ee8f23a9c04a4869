"""What a newcomer finds: three accounts, tasks to work on, and the model in the box beside them.

Everything may run at every start: tasks and deployments that are there are left as people have
changed them; the demo accounts get the printed passwords back.
"""

from __future__ import annotations

import secrets

from django.conf import settings

from agent.models import Deployment
from annotation.tasks import demo
from config.embedded.state import State
from training.weights import checkpoints

PEOPLE = ("annotator", "reviewer", "admin")


def content() -> dict[str, str]:
    """Create people and tasks that are missing; return each account's password.

    The passwords are made once and kept in the private part of the state folder.
    """
    state = State(settings.STATE_DIR)
    state.prepare()
    passwords = state.read("demo.json")
    if set(passwords) != set(PEOPLE):
        passwords = {name: passwords.get(name) or secrets.token_urlsafe(9) for name in PEOPLE}
        state.write("demo.json", passwords)
    demo.create(passwords)
    return passwords


def deployment() -> None:
    """Put the model in the box beside the annotators, if nobody has chosen a partner yet."""
    box = checkpoints.register_box()
    if Deployment.objects.filter(is_partner=True).exists():
        return
    Deployment.objects.update_or_create(
        name="box",
        defaults={
            "kind": Deployment.Kind.LOCAL,
            "reads": box.manifest.get("observation", "elements"),
            "dialect": box.manifest.get("dialect", "element"),
            "checkpoint_uri": box.uri,
            "version": box.version,
            # A thought and an action are some thirty tokens, what people type may be longer.
            "max_tokens": 96,
            "is_partner": True,
        },
    )
