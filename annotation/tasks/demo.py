"""What a newcomer finds: three people, their groups, and two dozen tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction

from annotation.models import Task

GROUPS = ("annotator", "reviewer")

# A MiniWoB page, the seed of its episode, and what it asks for with that seed.
PAGES: tuple[tuple[str, int, str], ...] = (
    ("click-button", 70001, 'Click on the "Submit" button.'),
    ("click-link", 70002, 'Click on the link "massa.".'),
    ("click-test", 70003, "Click the button."),
    ("click-test-2", 70004, "Click button ONE."),
    ("click-button-sequence", 70005, "Click button ONE, then click button TWO."),
    ("click-dialog", 70006, 'Close the dialog box by clicking the "x".'),
    ("click-dialog-2", 70007, 'Click the button in the dialog box labeled "OK".'),
    ("click-tab", 70008, "Click on Tab #2."),
    (
        "click-tab-2",
        70009,
        'Switch between the tabs to find and click on the link "blandit".',
    ),
    ("click-checkboxes", 70010, "Select IZfXD0, eBBRBA1 and click Submit."),
    ("click-option", 70011, "Select 6ObtrD and click Submit."),
    ("click-collapsible-nodelay", 70012, "Expand the section below and click submit."),
    ("click-widget", 70013, 'Click on a "textarea" widget.'),
    ("click-color", 70014, "Click on the grey colored box."),
    ("focus-text", 70015, "Focus into the textbox."),
    ("focus-text-2", 70016, "Focus into the 1st input textbox."),
    ("enter-text", 70017, 'Enter "Alan" into the text field and press Submit.'),
    ("enter-text-dynamic", 70018, 'Enter "u" into the text field and press Submit.'),
    (
        "enter-password",
        70019,
        'Enter the password "Oxu" into both text fields and press submit.',
    ),
    (
        "login-user",
        70020,
        'Enter the username "ignacio" and the password "pOp" into the text fields and press login.',
    ),
    ("click-button", 70021, 'Click on the "Submit" button.'),
)

DESKTOP: tuple[dict[str, Any], ...] = (
    {
        "external_id": "demo/editor-note",
        "instruction": (
            "In the text editor, write the line: Tandem was here. "
            "Save it as note.txt in the home folder."
        ),
        "setup": [{"kind": "launch", "argv": ["mousepad"]}],
        "verifier": {
            "kind": "file_contains",
            "path": "note.txt",
            "text": "Tandem was here",
        },
    },
    {
        "external_id": "demo/terminal-folder",
        "instruction": "In the terminal, make a folder called reports in the home folder.",
        "setup": [{"kind": "launch", "argv": ["xterm"]}],
        "verifier": {
            "kind": "shell",
            "command": "test -d ~/reports && echo there",
            "expect": "there",
        },
    },
    {
        "external_id": "demo/editor-replace",
        "instruction": (
            "The file list.txt is open in the text editor. "
            "Replace the word apples by pears and save the file."
        ),
        "setup": [
            {"kind": "write_file", "path": "list.txt", "text": "three apples\n"},
            {"kind": "launch", "argv": ["mousepad", "list.txt"]},
        ],
        "verifier": {
            "kind": "file_equals",
            "path": "list.txt",
            "text": "three pears\n",
        },
    },
)


def tasks() -> list[Task]:
    """Return the demo tasks, unsaved."""
    web = [
        Task(
            external_id=f"demo/{page}-{seed}",
            instruction=said,
            domain="web",
            setup=[{"kind": "miniwob", "page": page, "seed": seed}],
            verifier={"kind": "miniwob"},
            guidelines="One page, one short job. Finish as soon as the page says that it is over.",
            max_steps=15,
            priority=10,
        )
        for page, seed, said in PAGES
    ]
    desktop = [Task(domain="desktop", max_steps=30, **values) for values in DESKTOP]
    return web + desktop


@transaction.atomic
def create(passwords: Mapping[str, str]) -> list[User]:
    """Create groups, people and tasks that are missing; existing ones keep what they are.

    `passwords` are for "annotator", "reviewer" and "admin"; they are set anew, so that what
    `make run` prints is true. Returns the people.
    """
    groups = {name: Group.objects.get_or_create(name=name)[0] for name in GROUPS}
    people = []
    for name in ("annotator", "reviewer", "admin"):
        admin = name == "admin"
        user, _ = User.objects.get_or_create(
            username=name, defaults={"is_staff": admin, "is_superuser": admin}
        )
        if not user.check_password(passwords[name]):
            user.set_password(passwords[name])
            user.save(update_fields=["password"])
        if name in groups:
            user.groups.add(groups[name])
        people.append(user)
    Task.objects.bulk_create(tasks(), ignore_conflicts=True)
    return people
