"""Questions over linked pages: nothing names what is asked for, several pages have to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.answers import matches
from sandbox.families.protocol import SetupFailed, TaskSpec, UnknownTask, checksum
from sandbox.provider import ActionFailed, Desktop
from sandbox.sites import atlas, specs
from sandbox.sites.plan import Follower
from sandbox.verdict import Verdict
from trajectory import Navigate

VERSION = "1"
FIELDS: dict[str, type] = {
    "name": str, "corpus": str, "question": str, "accepted": list, "plan": list, "hops": list,
    "provenance": dict,
}  # fmt: skip


class Browsing:
    """The questions of our folder, and of another that an admin's own synthesis fills."""

    name = "browsing"

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def _records(self) -> Mapping[str, Any]:
        folders = [specs.OWN, *([self.folder] if self.folder else [])]
        return specs.by_name(folders, "browsing", FIELDS)

    def list(self) -> Sequence[TaskSpec]:
        return [
            TaskSpec(
                family=self.name,
                name=name,
                version=VERSION,
                checksum=checksum(atlas.data_checksum(), record["question"], record["accepted"]),
                max_steps=40,
                origins=(f"{atlas.folder().as_uri()}/",),
                tags=(record["corpus"], f"{len(record['hops'])}-hop"),
                # A judge compares with these where the words alone don't match.
                provenance={k: str(v) for k, v in record["provenance"].items()}
                | {"answer": "\n".join(record["accepted"])},
            )
            for name, record in self._records().items()
        ]

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        record = self._record(task)
        try:
            desktop.perform(
                Navigate(atlas.start()), epoch=epoch, action_id=f"browsing-{task.name}-{seed}"
            )
        except ActionFailed as error:
            raise SetupFailed(f"the atlas: {error}") from error
        return f"{record['question']} Look it up in the atlas; finish with the answer alone."

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        """Judge the answer by exact match; a judge model may look at those that fail it later."""
        record = self._record(task)
        right = matches(answer, record["accepted"])
        said = f"the answer {answer[:100]!r}" if answer else "no answer yet"
        detail = f"{said} is {'right' if right else 'not the known one'}" if answer else said
        metadata = task.metadata(seed) | {"reference": str(record["accepted"][0])}
        return Verdict(float(right), detail, bool(answer) or gave_up, metadata=metadata)

    def oracle(self, task: TaskSpec, seed: int) -> Follower:
        record = self._record(task)
        return Follower(record["plan"], answer=str(record["accepted"][0]))

    def _record(self, task: TaskSpec) -> Mapping[str, Any]:
        found: Mapping[str, Any] | None = self._records().get(task.name)
        if found is None:
            raise UnknownTask(f"{self.name} has no task {task.name!r}")
        return found


FAMILY = Browsing()
