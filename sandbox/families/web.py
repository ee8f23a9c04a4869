"""Tasks made from our web apps: right is who changed the database exactly as the task wants it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from sandbox.families.protocol import SetupFailed, TaskSpec, UnknownTask, checksum
from sandbox.provider import ActionFailed, Desktop
from sandbox.sites import change, specs
from sandbox.sites.apps import APPS
from sandbox.sites.plan import Follower
from sandbox.sites.server import Instance, server
from sandbox.verdict import Verdict
from trajectory import Navigate

VERSION = "1"
FIELDS: dict[str, type] = {
    "name": str, "site": str, "data_seed": int, "instruction": str, "plan": list, "change": dict,
    "provenance": dict,
}  # fmt: skip


class Web:
    """The tasks of our folder, and of another that an admin's own synthesis fills.

    A task has its rows in its own seed, since its words name them: the episode's seed changes nothing.
    """

    name = "web"

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._open: WeakKeyDictionary[Desktop, Instance] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def _records(self) -> Mapping[str, Any]:
        folders = [specs.OWN, *([self.folder] if self.folder else [])]
        return specs.by_name(folders, "web", FIELDS)

    def list(self) -> Sequence[TaskSpec]:
        return [
            TaskSpec(
                family=self.name,
                name=name,
                version=VERSION,
                checksum=checksum(record["instruction"], record["change"], record["data_seed"]),
                max_steps=max(15, 3 * len(record["plan"])),
                origins=(server().base,),
                tags=(record["site"],),
                provenance={k: str(v) for k, v in record["provenance"].items()},
            )
            for name, record in self._records().items()
        ]

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        record = self._record(task)
        if record["site"] not in APPS:
            raise SetupFailed(f"there is no site {record['site']!r}")
        instance = server().open(APPS[record["site"]], record["data_seed"])
        with self._lock:
            before = self._open.pop(desktop, None)
            self._open[desktop] = instance
        if before is not None:
            server().close(before)
        try:
            name = f"web-{instance.key}"
            desktop.perform(Navigate(instance.url), epoch=epoch, action_id=name)
        except ActionFailed as error:
            raise SetupFailed(f"{record['site']}: {error}") from error
        return str(record["instruction"])

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        record = self._record(task)
        with self._lock:
            instance = self._open.get(desktop)
        if instance is None:
            return Verdict(None, "no episode was begun on this page", False)
        found = change.between(instance.begun, instance.state())
        right = found == record["change"]
        return Verdict(float(right), change.told(found), right, metadata=task.metadata(seed))

    def oracle(self, task: TaskSpec, seed: int) -> Follower:
        return Follower(self._record(task)["plan"])

    def _record(self, task: TaskSpec) -> Mapping[str, Any]:
        found = self._records().get(task.name)
        if found is None:
            raise UnknownTask(f"{self.name} has no task {task.name!r}")
        return found


FAMILY = Web()
