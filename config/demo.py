"""What a newcomer finds: three accounts, tasks to work on, and the model in the box beside them.

Everything may run at every start: what is there already is left as people have changed it.
"""

from __future__ import annotations

import secrets
from importlib.util import find_spec

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from agent.models import Deployment
from annotation import tasks as verbs
from annotation.models import Task
from config.embedded.state import State
from sandbox import miniwob

ROLES = {"annotator": "annotator", "reviewer": "reviewer", "admin": ""}
SEEDS_PER_PAGE = 5
FIRST_SEED = 100_000  # the box model is trained below and measured above; see agent/box


def people() -> dict[str, str]:
    """Return each demo account's password; made once, kept in the private part of the state folder."""
    state = State(settings.STATE_DIR)
    state.prepare()
    passwords = state.read("demo.json")
    if set(passwords) != set(ROLES):
        passwords = {name: passwords.get(name) or secrets.token_urlsafe(9) for name in ROLES}
        state.write("demo.json", passwords)
    for name, group in ROLES.items():
        with transaction.atomic():
            user, new = User.objects.get_or_create(
                username=name, defaults={"is_staff": not group, "is_superuser": not group}
            )
            if new:
                user.set_password(passwords[name])
                user.save()
            if group:
                user.groups.add(Group.objects.get_or_create(name=group)[0])
    return passwords


def tasks() -> None:
    """Create the demo's tasks where there is not a single task yet."""
    if Task.objects.exists():
        return
    with transaction.atomic():
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS_PER_PAGE):
            for page in miniwob.PAGES:
                verbs.create(
                    external_id=f"{page}-{seed}",
                    instruction="Do what the yellow line of the page says.",
                    domain="miniwob",
                    setup=[{"kind": "miniwob", "page": page, "seed": seed}],
                    verifier={"kind": "miniwob"},
                    max_steps=15,
                )
        for external_id, instruction, setup, verifier in DESKTOP:
            verbs.create(
                external_id=external_id,
                instruction=instruction,
                domain="desktop",
                setup=setup,
                verifier=verifier,
                priority=-1,
            )


DESKTOP: tuple[tuple[str, str, list[dict[str, object]], dict[str, object]], ...] = (
    (
        "desktop-note",
        'Write "buy milk" into the open editor and save it as /home/user/note.txt.',
        [{"kind": "launch", "argv": ["mousepad"]}],
        {"kind": "file_contains", "path": "/home/user/note.txt", "text": "buy milk"},
    ),
    (
        "desktop-folder",
        'In the terminal, make a folder called "reports" in the home folder.',
        [{"kind": "launch", "argv": ["xterm"]}],
        {"kind": "shell", "command": "test -d ~/reports && echo yes", "expect": "yes"},
    ),
    (
        "desktop-rename",
        'Rename the file draft.txt in the home folder to "final.txt".',
        [
            {"kind": "write_file", "path": "/home/user/draft.txt", "text": "first draft\n"},
            {"kind": "launch", "argv": ["pcmanfm", "/home/user"]},
        ],
        {"kind": "file_equals", "path": "/home/user/final.txt", "text": "first draft\n"},
    ),
)


def deployment() -> None:
    """Put the model in the box beside the annotators, if nobody has chosen a partner yet."""
    if (
        find_spec("agent.deployments") is None
        or not (settings.BASE_DIR / "agent/box/tandem.json").exists()
    ):
        return
    from training import checkpoints

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
            "is_partner": True,
        },
    )
