"""Fetch a file with the browser, work on it, answer: by the screen alone, or with the shell."""

from __future__ import annotations

import functools
import posixpath
import time
import uuid
from collections.abc import Callable, Sequence

from sandbox.answers import matches
from sandbox.families.protocol import NoWay, SetupFailed, TaskSpec, UnknownTask, checksum
from sandbox.hybrid import data
from sandbox.hybrid.data import CASES, Case
from sandbox.interpreter import guest_python
from sandbox.provider import ActionFailed, Desktop
from sandbox.verdict import Verdict
from trajectory import Action, Click, Finish, Hotkey, Navigate, OpenApp, Shell, Step, Type, Wait

VERSION = "1"
PORT = 8081
SITE = "/home/user/.site"
DOWNLOADS = "/home/user/Downloads"
URL = f"http://127.0.0.1:{PORT}/"
_WITHIN_S = 20.0

VARIANTS = {
    "gui": "Use only the mouse and the keyboard.",
    "sdk": "The browser saves into ~/Downloads; you may use the shell there.",
}

LOOK: tuple[tuple[str, Callable[[str], Action]], ...] = (
    ("I open the editor.", lambda name: OpenApp("editor")),
    ("I wait for its window.", lambda name: Wait(1500)),
    ("I bring it to the front.", lambda name: OpenApp("editor")),
    ("I ask it for a file.", lambda name: Hotkey(("ctrl", "o"))),
    ("I name the file.", lambda name: Type(posixpath.join(DOWNLOADS, name), submit=True)),
    ("I wait until it is shown.", lambda name: Wait(1000)),
)
"""How somebody reads a saved file by mouse and keyboard alone."""


class Script:
    """Clicks the link, looks at the file in the way of its variant, and answers."""

    def __init__(self, case: Case, variant: str) -> None:
        self.case, self.variant = case, variant

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        match len(steps):
            case 0:
                for element in desktop.observe(elements=True).elements or ():
                    if element.role == "link" and element.name == self.case.wanted:
                        return f"I save {self.case.wanted}.", Click(*element.centre)
                raise NoWay(f"no link {self.case.wanted} is on the screen")
            case 1:
                return "I wait until it is saved.", Wait(1500)
            case 2 if self.variant == "sdk":
                return "I work it out in the shell.", Shell(
                    f"cd ~/Downloads && {self.case.command}"
                )
            case n if self.variant == "gui" and n < 2 + len(LOOK):
                thought, action = LOOK[n - 2]
                return thought, action(self.case.wanted)
            case _ if self.variant == "sdk":
                # Taken from what the shell said, not from what the task knows: it proves the command.
                words = (desktop_output(steps) or "").split()
                if not words:
                    raise NoWay("the shell said nothing")
                return "That is the answer.", Finish(words[-1])
            case _:
                return "I have read it.", Finish(self.case.answer)


def desktop_output(steps: Sequence[Step]) -> str:
    """Return what the last tool printed, as the newest observation has it."""
    return steps[-1].observation.tool_output if steps else ""


@functools.lru_cache(maxsize=256)
def case_of(kind: str, seed: int) -> Case:
    return CASES[kind](seed)


class Hybrid:
    """Every case in both variants."""

    name = "hybrid"

    def list(self) -> Sequence[TaskSpec]:
        return [
            TaskSpec(
                family=self.name,
                name=f"{kind}-{variant}",
                version=VERSION,
                checksum=checksum(data.PAGE, [case_of(kind, n).files for n in range(3)], variant),
                surface="desktop",
                max_steps=20,
                at_end=True,
                tags=(f"hybrid-{variant}", variant),
            )
            for kind in CASES
            for variant in VARIANTS
        ]

    def instruction(self, task: TaskSpec, seed: int) -> str:
        """Return what `setup` would, without a computer."""
        case, variant = self._case(task, seed)
        return (
            f"The page in the browser offers files. Save the one that you need and answer: "
            f"{case.question} {VARIANTS[variant]} Finish with the answer alone."
        )

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        case, _ = self._case(task, seed)

        def shell(command: str) -> str:
            name = f"hybrid-{uuid.uuid4().hex}"
            return desktop.shell(command, epoch=epoch, action_id=name).output.strip()

        shell(f"rm -rf {SITE} {DOWNLOADS}; mkdir -p {SITE}/files {DOWNLOADS}")
        for name, text in case.files.items():
            desktop.write_file(f"{SITE}/files/{name}", text.encode(), epoch=epoch)
        desktop.write_file(f"{SITE}/index.html", data.page(case).encode(), epoch=epoch)
        python = guest_python(shell)
        serve = [python, "-m", "http.server", str(PORT), "--bind", "127.0.0.1", "--directory", SITE]
        probe = f"{python} -c \"import urllib.request as u; u.urlopen('{URL}', timeout=2)\""
        if shell(f"{probe} >/dev/null 2>&1 && echo up") != "up":
            desktop.launch(serve, epoch=epoch, action_id=f"hybrid-{uuid.uuid4().hex}")
            _until(lambda: shell(f"{probe} >/dev/null 2>&1 && echo up") == "up", "the site")
        desktop.perform(Navigate(URL), epoch=epoch, action_id=f"hybrid-{uuid.uuid4().hex}")
        _until(lambda: _shows(desktop, case.title), "the page")
        desktop.settle()
        return self.instruction(task, seed)

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        """Reward 1 for the right answer by somebody who saved the file; guessing is not enough."""
        case, _ = self._case(task, seed)

        def verdict(reward: float, detail: str) -> Verdict:
            return Verdict(reward, detail, bool(answer) or gave_up, metadata=task.metadata(seed))

        try:
            saved = desktop.read_file(f"~/Downloads/{case.wanted}").decode()
        except (ActionFailed, UnicodeDecodeError):
            return verdict(0.0, f"{case.wanted} was not saved")
        if saved != case.files[case.wanted]:
            return verdict(0.0, f"{case.wanted} was changed")
        if matches(answer, [case.answer]):
            return verdict(1.0, f"the answer {case.answer} is right")
        return verdict(0.0, f"the answer {answer[:100]!r} is not {case.answer}")

    def oracle(self, task: TaskSpec, seed: int) -> Script:
        return Script(*self._case(task, seed))

    def _case(self, task: TaskSpec, seed: int) -> tuple[Case, str]:
        kind, _, variant = task.name.rpartition("-")
        if kind not in CASES or variant not in VARIANTS:
            raise UnknownTask(f"{self.name} has no task {task.name!r}")
        return case_of(kind, seed), variant


def _shows(desktop: Desktop, title: str) -> bool:
    try:
        return desktop.evaluate("document.readyState + document.title") == f"complete{title}"
    except ActionFailed:
        return False


def _until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not ready():
        if time.monotonic() > deadline:
            raise SetupFailed(f"waited {_WITHIN_S:g} s for {what}")
        time.sleep(0.05)


FAMILY = Hybrid()
