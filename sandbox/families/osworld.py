"""Desktop tasks in OSWorld's JSON: our own few, and any folder of them that an admin names."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from sandbox.families.protocol import NoWay, TaskSpec, UnknownTask, checksum
from sandbox.osworld import judge, steps, task
from sandbox.osworld.assets import Assets
from sandbox.osworld.getters import Place
from sandbox.osworld.support import Reason, reasons
from sandbox.osworld.task import BadTask, OSWorldTask
from sandbox.provider import Desktop
from sandbox.verdict import Verdict
from trajectory import Action, Finish, Step, action_from_dict

OWN = Path(task.__file__).with_name("tasks")
VERSION = "1"


class Script:
    """Plays the actions that a task carries, then says that it is done."""

    def __init__(self, found: OSWorldTask) -> None:
        self._steps = found.oracle

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        if len(steps) > len(self._steps):
            raise NoWay("the script is over and the task is not")
        if len(steps) == len(self._steps):
            return "All is done, I finish.", Finish()
        said = self._steps[len(steps)]
        return str(said["thought"]), action_from_dict(said["action"])


class OSWorld:
    """Lists what can be done here of `folder`; `left_out` says why the rest can't."""

    name = "osworld"

    def __init__(self, folder: Path = OWN, assets: Path | None = None) -> None:
        self.use(folder, assets)

    def use(self, folder: Path, assets: Path | None) -> None:
        """Take tasks from `folder` besides our own, and the files that they want from `assets`."""
        self.folder, self.assets = folder, Assets(assets)
        self.__dict__.pop("_read", None)  # what was read of another folder

    @cached_property
    def _read(self) -> tuple[dict[str, OSWorldTask], dict[str, list[Reason]], list[BadTask]]:
        kept: dict[str, OSWorldTask] = {}
        left: dict[str, list[Reason]] = {}
        bad: list[BadTask] = []
        for folder in dict.fromkeys((OWN, self.folder)):
            for found in task.read_folder(folder):
                if isinstance(found, BadTask):
                    bad.append(found)
                elif why := reasons(found, self.assets):
                    left[found.id] = why
                else:
                    kept[found.id] = found
        return kept, left, bad

    @property
    def left_out(self) -> dict[str, list[Reason]]:
        """Every task that is not listed, and why."""
        return self._read[1]

    @property
    def unreadable(self) -> list[BadTask]:
        return self._read[2]

    def list(self) -> Sequence[TaskSpec]:
        return [self._spec(found) for found in self._read[0].values()]

    def _spec(self, found: OSWorldTask) -> TaskSpec:
        return TaskSpec(
            family=self.name,
            name=found.id,
            version=VERSION,
            checksum=checksum(found.as_dict()),
            surface="desktop",
            max_steps=30,
            at_end=True,
            tags=(found.domain, *found.apps),
            provenance={"source": found.source} if found.source else {},
        )

    def instruction(self, task: TaskSpec, seed: int) -> str:
        """Return what `setup` would, without a computer."""
        return self._found(task).instruction

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        found = self._found(task)
        steps.run(self._place(desktop, epoch), found.config)
        return found.instruction

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        epoch = int(str(desktop.health()["epoch"]))
        verdict = judge.judge(
            self._place(desktop, epoch), self._found(task).evaluator, gave_up=gave_up
        )
        return verdict._replace(metadata=task.metadata(seed))

    def oracle(self, task: TaskSpec, seed: int) -> Script | None:
        found = self._found(task)
        return Script(found) if found.oracle else None

    def _found(self, task: TaskSpec) -> OSWorldTask:
        found = self._read[0].get(task.name)
        if found is None:
            raise UnknownTask(f"{self.name} has no task {task.name!r}")
        return found

    def _place(self, desktop: Desktop, epoch: int) -> Place:
        # A name of its own for every question: the same command asked twice runs twice.
        return Place(desktop, epoch, self.assets, lambda what: f"osworld-{uuid.uuid4().hex}")


FAMILY = OSWorld()
