"""Pages that are kept open between episodes, seen without pictures, with a shell where asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.dialects.frame import shown
from agent.environment import DesktopEnvironment
from agent.loop import ActionRefused, EnvironmentFailure
from agent.words import element_line
from experiments.tasks import STEPS, TOOL, Case
from sandbox import families
from sandbox.families import TaskSpec
from sandbox.provider import SandboxError
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from training.rollouts.play import TaskEnvironment
from training.rollouts.slots import Control
from trajectory import Action, Element, Observation, Shell

NO_PICTURE = "0" * 64
MAX_STEPS = 8


class Pages:
    """Pages of one fleet, each kept on the task that it shows: a reset is then one call.

    At most `most` are open; beyond it one that waits for another task is closed.
    """

    def __init__(self, fleet: Fleet, most: int) -> None:
        self._fleet, self._most = fleet, most
        self._idle: dict[str, list[BrowserPage]] = {}
        self._open = 0
        self._changed = threading.Condition()

    @contextmanager
    def page(self, task: TaskSpec) -> Iterator[BrowserPage]:
        """Lend a page for one episode; one that broke is not given to anybody again."""
        page = self._take(task)
        broken = True
        try:
            yield page
            broken = False
        finally:
            with self._changed:
                if broken:
                    self._close(page)
                else:
                    self._idle.setdefault(task.id, []).append(page)
                self._changed.notify()

    def _take(self, task: TaskSpec) -> BrowserPage:
        with self._changed:
            while not (mine := self._living(task)) and self._open >= self._most:
                other = next((idle for idle in self._idle.values() if idle), None)
                if other is None:
                    self._changed.wait()
                else:
                    self._close(other.pop(0))
            if mine:
                return mine.pop()
            self._open += 1
        spec = PageSpec(task.width, task.height, clock=task.timed, origins=task.origins)
        try:
            return self._fleet.open(spec)
        except BaseException:
            with self._changed:
                self._open -= 1
                self._changed.notify()
            raise

    def _living(self, task: TaskSpec) -> list[BrowserPage]:
        """Return the pages kept for `task`; those that died while a trainer worked are given up."""
        kept = self._idle.get(task.id, [])
        for page in [page for page in kept if page.target.lost]:
            kept.remove(page)
            self._close(page)
        return kept

    def _close(self, page: BrowserPage) -> None:
        self._open -= 1
        try:
            page.close()
        except SandboxError:
            pass  # it is gone already


@dataclass(slots=True)
class Eyes(DesktopEnvironment):
    """Sees the elements only; `shell` greps them, as a tool of a GUI-SDK environment would."""

    shell: bool = False
    seen: tuple[Element, ...] = field(default=())

    def observe(self) -> Observation:
        """Return the elements on the screen; raises EnvironmentFailure."""
        assert isinstance(self.desktop, BrowserPage)
        try:
            found = self.desktop.step(None, elements=True, picture=False)
        except SandboxError as error:
            raise EnvironmentFailure(f"the page could not be observed: {error}") from error
        self.seen = found.elements or ()
        output, self.output = self.output, ""
        return Observation(
            NO_PICTURE, self.desktop.width, self.desktop.height, self.seen, tool_output=output
        )

    def act(self, action: Action) -> None:
        """Do `action`, or grep; raises ActionRefused, EnvironmentFailure."""
        if not (isinstance(action, Shell) and self.shell):
            DesktopEnvironment.act(self, action)
            return
        word, _, text = action.command.partition(" ")
        if word != "grep":
            raise ActionRefused(f"{word}: command not found")
        lines = (f"{n}: {element_line(self.seen[n - 1])}" for n in shown(self.seen))
        self.output = "; ".join(line for line in lines if text.strip("'\"") in line)[:200] or "none"


@dataclass
class TaskPage(TaskEnvironment):
    """An episode on a kept page; says that there is a shell where there is one."""

    tooled: bool = False

    def setup(self) -> str:
        said = super().setup()
        return f"{said} {TOOL}" if self.tooled else said


def environment(page: BrowserPage, case: Case, control: Control) -> TaskPage:
    """Return the environment of one episode."""
    family, task = families.task(case.task)
    tooled = case.variant == "sdk"
    eyes = Eyes(page, 0, lambda png: NO_PICTURE, settle=False, shell=tooled)
    return TaskPage(
        page, family, task, case.seed, 0, 60.0, control, eyes, lambda: None, tooled=tooled
    )


def steps_of(case: Case) -> int:
    """Return how many steps the episode may have; looking something up costs one more."""
    return STEPS.get(case.task, MAX_STEPS) + (2 if case.variant == "sdk" else 0)
