"""Computers of every kind beside those that a stack has, a task for each, and who works on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sandbox.providers.android.adb import Adb
from tests.e2e.stack import Stack
from tests.e2e.workbench import Workbench
from tests.sandbox.phones import phones
from tests.waiting import until

OWN = "local"
"""The kind that `make run` has by itself; its pool is the default one."""

EDITOR = {
    "instruction": "The file list.txt is open in the text editor. "
    "Add a line with the word bread and save it.",
    "domain": "desktop",
    "setup": [
        {"kind": "write_file", "path": "list.txt", "text": "milk\nbutter\n"},
        {"kind": "launch", "argv": ["mousepad", "list.txt"]},
    ],
    "verifier": {"kind": "file_contains", "path": "list.txt", "text": "milk\nbutter\nbread"},
}
NOTES = {"instruction": "Open Notes and write down: two lemons.", "domain": "phone"}


@dataclass(frozen=True)
class Kind:
    """One kind of computer: its task, what is proposed there, what a hand does then, and the proof.

    `proposals` are those of the first step and of all later ones. The hand's part and the proof get the workbench, the proof also the phone where there is one.
    """

    name: str
    task: dict[str, Any]
    proposals: tuple[list[dict[str, Any]], list[dict[str, Any]]]
    hand: Callable[[Workbench], None]
    proof: Callable[[Workbench, Adb | None], None]


def _write_bread(work: Workbench) -> None:
    """Click into the editor, go to its end, type, save: all of it through the relay."""
    work.click_desktop((400, 200))
    for key in ("Control+End", *"bread", "Enter", "Control+s"):
        work.page.keyboard.press(key)
    work.arrived(keys=10)


def _write_lemons(work: Workbench) -> None:
    work.click_desktop((180, 200))
    for key in "two lemons":
        work.page.keyboard.press("Space" if key == " " else key)
    work.arrived(keys=len("two lemons"))


def _bread_is_saved(work: Workbench, _: Adb | None) -> None:
    """The task's verifier looks into the guest's file."""
    session = work.id
    work.finish("The list has its third line.")
    judged = "select reward from annotation_session where id = %s and reward is not null"
    assert until(lambda: work.stack.rows(judged, session), "verdict") == [(1.0,)]


def _lemons_are_noted(_: Workbench, phone: Adb | None) -> None:
    assert phone is not None
    until(lambda: "two lemons" in phone.shell("simulate note").text, "note on the phone")


def _candidate(thought: str, **action: Any) -> dict[str, Any]:
    return {"thought": thought, "action": action}


_EDITOR_FIRST = [
    _candidate("The list is open in the editor. I click into it.", type="click", x=520, y=300),
    _candidate("I put the caret behind the last line.", type="hotkey", keys=["ctrl", "end"]),
    _candidate("I write the missing word at once.", type="type", text="bread", submit=True),
]
_EDITOR_THEN = [
    _candidate("I put the caret behind the last line.", type="hotkey", keys=["ctrl", "end"]),
    _candidate("I save the file.", type="hotkey", keys=["ctrl", "s"]),
]
_NOTES_FIRST = [
    _candidate("Notes is on the home screen, so I tap it.", type="click", x=57, y=540),
    _candidate("I open the app by its name.", type="open_app", name="notes"),
    _candidate("I look whether there are more apps.", type="scroll", x=180, y=400, dx=0, dy=3),
]
_NOTES_THEN = [
    _candidate("The note is empty. I tap it to write.", type="click", x=180, y=195),
    _candidate("I go back to the home screen.", type="hotkey", keys=["home"]),
]
_DESKTOP = (EDITOR, (_EDITOR_FIRST, _EDITOR_THEN), _write_bread, _bread_is_saved)
KINDS = {
    **{name: Kind(name, *_DESKTOP) for name in ("local", "container", "qemu")},
    "android": Kind(
        "android", NOTES, (_NOTES_FIRST, _NOTES_THEN), _write_lemons, _lemons_are_noted
    ),
}


@contextmanager
def computers(stack: Stack, kind: str) -> Iterator[Adb | None]:
    """Have computers of `kind` in `stack`; yields the phone behind them where there is one."""
    if kind == OWN:
        yield None
    elif kind == "android":
        home = stack.state / "sandboxes"
        home.mkdir(exist_ok=True)
        with phones(home, count=1) as found, _host(stack, kind):
            yield found[0]
    else:
        with _host(stack, kind):
            yield None


@contextmanager
def _host(stack: Stack, kind: str) -> Iterator[None]:
    words = ["sandbox_host", "--name", f"e2e-{kind}", "--providers", kind, "--slots", "1"]
    host = stack.manage(*words, "--stop-desktops-on-exit")
    ready = (
        "select 1 from sandbox_sandbox s join sandbox_pool p on p.id = s.pool_id"
        " where p.name = %s and s.state = 'ready'"
    )
    try:
        until(lambda: stack.rows(ready, kind), f"{kind} computer", deadline_s=240)
        yield
    finally:
        host.terminate()
        host.wait(60)


def offer(stack: Stack, kind: Kind) -> None:
    """Put the kind's task first into the queue, and a script that proposes beside the annotators."""
    pool = "" if kind.name == OWN else kind.name
    task = {"external_id": f"kinds/{kind.name}", "pool": pool, "priority": 1000, **kind.task}
    script = [kind.proposals[0], *[kind.proposals[1]] * 20]
    code = (
        "import json; from agent import deployments; from agent.models import Deployment;"
        " from annotation.models import Task; from annotation.tasks import ingest;"
        f" task = json.loads({json.dumps(task)!r});"
        " report = ingest.import_tasks(json.dumps([task]), format='json'); assert report.ok, report;"
        " row, _ = Deployment.objects.update_or_create(name='script', defaults={'kind': 'scripted',"
        f" 'script': json.loads({json.dumps(script)!r})}});"
        " deployments.set_partner(row)"
    )
    stack.run("shell", "-c", code)


def withdraw(stack: Stack) -> None:
    """Let the model in the box propose again, and take the kinds' tasks out of the queue."""
    code = (
        "from agent import deployments; from agent.models import Deployment;"
        " from annotation.models import Task;"
        " Task.objects.filter(external_id__startswith='kinds/').update(state='retired');"
        " deployments.set_partner(Deployment.objects.get(name='box'))"
    )
    stack.run("shell", "-c", code)
