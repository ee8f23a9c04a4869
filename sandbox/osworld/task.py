"""Reading tasks: one object per file, or a list of them; every mistake by file and field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

System = Literal["linux", "windows"]

_WINDOWS = re.compile(r"[A-Za-z]:\\\\|powershell|taskkill|%USERPROFILE%|%APPDATA%|msedge", re.I)


class BadTask(ValueError):
    """A record is no task; the message names the file, the field and what is wrong."""


@dataclass(frozen=True, slots=True)
class OSWorldTask:
    """One task as its file says it. `apps` are OSWorld's names ("chrome", "libreoffice_calc", "os").

    `oracle` is ours: the actions, with a thought each, that solve the task.
    """

    id: str
    instruction: str
    domain: str
    system: System
    config: tuple[Mapping[str, Any], ...]
    evaluator: Mapping[str, Any]
    apps: tuple[str, ...] = ()
    source: str = ""
    oracle: tuple[Mapping[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the task in OSWorld's own shape."""
        return {
            "id": self.id,
            "instruction": self.instruction,
            "source": self.source,
            "config": [dict(step) for step in self.config],
            "related_apps": list(self.apps),
            "evaluator": dict(self.evaluator),
        }


def read(record: object, *, where: str, domain: str = "") -> OSWorldTask:
    """Return the task that `record` describes; raises BadTask beginning with `where`."""
    if not isinstance(record, Mapping):
        raise BadTask(f"{where}: a task is an object, this is {type(record).__name__}")
    id, instruction = record.get("id"), record.get("instruction")
    if not isinstance(id, str) or not id:
        raise BadTask(f"{where}: id: a text is missing")
    if not isinstance(instruction, str) or not instruction.strip():
        raise BadTask(f"{where}: instruction: a text is missing")
    config = record.get("config") or []
    if not isinstance(config, list):
        raise BadTask(f"{where}: config: must be a list of steps")
    evaluator = record.get("evaluator")
    if not isinstance(evaluator, Mapping):
        raise BadTask(f"{where}: evaluator: an object is missing")
    if not evaluator.get("func"):
        raise BadTask(f"{where}: evaluator.func: the name of a function is missing")
    for place, steps in (("config", config), ("evaluator.postconfig", evaluator.get("postconfig"))):
        for number, step in enumerate(steps or []):
            if not isinstance(step, Mapping) or not isinstance(step.get("type"), str):
                raise BadTask(f"{where}: {place}[{number}]: a step is an object with a type")
            if not isinstance(step.get("parameters", {}), Mapping):
                raise BadTask(f"{where}: {place}[{number}].parameters: must be an object")
    apps = record.get("related_apps") or []
    if not isinstance(apps, list) or not all(isinstance(app, str) for app in apps):
        raise BadTask(f"{where}: related_apps: must be a list of texts")
    return OSWorldTask(
        id=id,
        instruction=instruction.strip(),
        domain=domain or str(record.get("domain") or record.get("snapshot") or ""),
        system=_system(record),
        config=tuple(config),
        evaluator=evaluator,
        apps=tuple(apps),
        source=str(record.get("source") or ""),
        oracle=tuple(record.get("oracle") or ()),
    )


def _system(record: Mapping[str, Any]) -> System:
    """Return what the task says it runs on, else what its commands and programs look like."""
    said = str(record.get("os_type") or record.get("os") or "").lower()
    if said:
        return "windows" if said.startswith("win") else "linux"
    found = _WINDOWS.search(json.dumps([record.get("config"), record.get("evaluator")]))
    return "windows" if found else "linux"


def read_file(path: Path) -> Iterator[OSWorldTask | BadTask]:
    """Yield the tasks of one file, a BadTask in the place of each that can't be read.

    The folder's name is the domain, as in OSWorld's own tree.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield BadTask(f"{path.name}: {error}")
        return
    records = content if isinstance(content, list) else [content]
    for number, record in enumerate(records, start=1):
        where = path.name if len(records) == 1 else f"{path.name}, task {number}"
        try:
            yield read(record, where=where, domain=path.parent.name)
        except BadTask as problem:
            yield problem


def read_folder(folder: Path) -> Iterator[OSWorldTask | BadTask]:
    """Yield what every JSON file below `folder` holds, by path; lists of ids (test_all.json) too."""
    if not folder.is_dir():
        yield BadTask(f"{folder.name}: there is no such folder")
        return
    for path in sorted(folder.rglob("*.json")):
        if not path.name.startswith("test_"):
            yield from read_file(path)
