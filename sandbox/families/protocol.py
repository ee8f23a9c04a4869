"""What a kind of task promises: it lists its tasks, brings a computer to a start, and judges the end.

A family knows no policy, no database and no lease. Everything it does goes through a Desktop, so the
same task runs in a page of the browser sandbox, on a desktop beside an annotator, and in a test.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, Protocol, TypeAlias

from sandbox.provider import Desktop, SandboxError
from sandbox.verdict import Verdict
from trajectory import Action, Step

Surface: TypeAlias = Literal["page", "desktop"]
"""What a task needs: a page of a browser, or a whole desktop with a shell and files."""

Split: TypeAlias = Literal["train", "test", "out_of_domain"]


class UnknownTask(SandboxError):
    """A family has no task of that name; the message lists what comes nearest."""


class SetupFailed(SandboxError):
    """The starting state was not reached; the message names the step and what it waited for."""


class NoWay(Exception):
    """An oracle does not know how to go on from here; the message says at what."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One task of a family; with a seed it is one episode.

    `checksum` is the sha256 of everything that the outcome depends on (pages, verifier, data), so that
    two scores are comparable exactly if it is the same. `width`, `height`: of the page or screen, pixels.
    `reference` is the score that counts as reward 1, and `reference_from` says whose it is ("human",
    "script", "rules"); 0 and "" where a verifier answers yes or no. `provenance` says where a made task
    comes from.
    """

    family: str
    name: str
    version: str
    checksum: str
    surface: Surface = "page"
    max_steps: int = 30
    width: int = 1280
    height: int = 720
    split: Split = "train"
    reference: float = 0.0
    reference_from: str = ""
    timed: bool = False
    """Whether the page moves by itself: then it runs on the fake clock."""
    at_end: bool = False
    """Whether it is judged only once, after the last step: judging changes the computer, or is dear."""
    origins: tuple[str, ...] = ("file:///",)
    """Address prefixes that a page of the task may load; nothing else is reachable."""
    tags: tuple[str, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.family}/{self.name}"

    def metadata(self, seed: int) -> dict[str, str]:
        """Return what a verdict carries to say what exactly was judged."""
        return {
            "family": self.family,
            "task": self.name,
            "seed": str(seed),
            "version": self.version,
            "checksum": self.checksum,
        }

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


class Oracle(Protocol):
    """Solves one episode of one task; it may look behind the screen, a policy may not."""

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        """Return the next (thought, action), Finish when it is over; raises NoWay."""
        ...


class TaskFamily(Protocol):
    """One kind of task. All methods may be called from several threads at once."""

    name: str

    def list(self) -> Sequence[TaskSpec]:
        """Return every task, in a fixed order; cheap, and without a computer."""
        ...

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        """Bring `desktop` to the start of the episode of `seed` and return the instruction.

        The same seed gives the same start on every computer. May be called on a computer on which
        another episode was played. Raises SetupFailed, or what the desktop raises.
        """
        ...

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        """Judge the computer as it is now; changes nothing that the task could see.

        Called after every step, unless the task is judged at its end. `answer` is what the actor's
        Finish said; `gave_up` whether it said Fail, which is right where a task can't be done.
        """
        ...

    def oracle(self, task: TaskSpec, seed: int) -> Oracle | None:
        """Return what solves the task, None where nobody has written it down."""
        ...


def find(family: TaskFamily, name: str) -> TaskSpec:
    """Return the task called `name`; raises UnknownTask."""
    tasks = {task.name: task for task in family.list()}
    if name in tasks:
        return tasks[name]
    near = ", ".join(difflib.get_close_matches(name, tasks, n=3)) or "nothing like it"
    raise UnknownTask(f"{family.name} has no task {name!r} (it has {near})")


def checksum(*parts: bytes | str | object) -> str:
    """Return one sha256 over bytes, texts and JSON values, each with its length before it."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            part = part.encode()
        elif not isinstance(part, bytes):
            part = json.dumps(part, sort_keys=True).encode()
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
