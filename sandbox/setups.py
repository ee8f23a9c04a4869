"""Bringing a computer to a task's starting state, and judging what it is like at the end.

Both are plain JSON on a task: `setup` is a list of steps, `verifier` one object, each with its
`kind`. What can be written there is checked on import, so that it can't surprise on a desktop.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sandbox import families, miniwob
from sandbox.families.protocol import SetupFailed
from sandbox.provider import ActionFailed, Desktop
from sandbox.verdict import Verdict
from trajectory import Navigate

_READY_WITHIN_S = 20.0
_WINDOW_WITHIN_S = 10.0
_POLL_S = 0.05

# kind -> its fields, each with the type it must have.
_SETUPS: dict[str, dict[str, type]] = {
    "family": {"task": str, "seed": int},
    "miniwob": {"page": str, "seed": int},
    "open_url": {"url": str},
    "launch": {"argv": list},
    "write_file": {"path": str, "text": str},
}
_VERIFIERS: dict[str, dict[str, type]] = {
    "family": {"task": str, "seed": int},
    "miniwob": {},
    "file_equals": {"path": str, "text": str},
    "file_contains": {"path": str, "text": str},
    "shell": {"command": str, "expect": str},
}
_WORDS = {str: "text", int: "a whole number", list: "a list of texts"}


def check_setup(setup: object) -> list[str]:
    """Return what is wrong with a setup, one message each; [] if it can be run."""
    if not isinstance(setup, list):
        return ["must be a list of steps"]
    return [
        f"step {number}: {problem}"
        for number, step in enumerate(setup, start=1)
        for problem in _problems(step, _SETUPS)
    ]


def check_verifier(verifier: object) -> list[str]:
    """Return what is wrong with a verifier; {} is fine and verifies nothing."""
    return [] if verifier == {} else _problems(verifier, _VERIFIERS)


def set_up(desktop: Desktop, setup: Sequence[Mapping[str, Any]], *, epoch: int) -> None:
    """Run a task's setup from its first step to its last.

    May be called again for the same lease: nothing is launched twice. Raises SetupFailed, or what
    the desktop raises.
    """
    for number, step in enumerate(setup):
        problems = _problems(step, _SETUPS)
        if problems:
            raise SetupFailed(f"setup step {number + 1}: {problems[0]}")
        try:
            _STEPS[step["kind"]](desktop, step, epoch, _action_id(epoch, number, step))
        except ActionFailed as error:
            raise SetupFailed(f"setup step {number + 1} ({step['kind']}): {error}") from error


def verify(
    desktop: Desktop, verifier: Mapping[str, Any], *, answer: str = "", gave_up: bool = False
) -> Verdict:
    """Judge the desktop as it is now; changes nothing that a task could see.

    `answer` is what was said at the end, `gave_up` whether it was that the task can't be done.
    """
    if verifier.get("kind") == "family":
        family, task = families.task(verifier["task"])
        return family.verify(desktop, task, verifier["seed"], answer=answer, gave_up=gave_up)
    if gave_up:
        return Verdict(0.0, "this task can be done", True)
    match verifier.get("kind"):
        case None:
            return Verdict(None, "this task has no verifier", False)
        case "miniwob":
            return Verdict(*miniwob.verdict(desktop.evaluate(miniwob.state_script())))
        case "file_equals":
            return _file(desktop, verifier["path"], "equals", lambda t: t == verifier["text"])
        case "file_contains":
            return _file(desktop, verifier["path"], "contains", lambda t: verifier["text"] in t)
        case "shell":
            return _shell(desktop, verifier["command"], verifier["expect"])
        case kind:
            raise SetupFailed(f"no verifier {kind!r}; there are: {', '.join(_VERIFIERS)}")


def _action_id(epoch: int, number: int, step: Mapping[str, Any]) -> str:
    """Return the same id for the same step of the same lease: a second run launches nothing twice."""
    said = json.dumps([epoch, number, step], sort_keys=True)
    return f"setup-{hashlib.sha256(said.encode()).hexdigest()[:32]}"


# -- setting up --------------------------------------------------------------------------------


def _miniwob(desktop: Desktop, step: Mapping[str, Any], epoch: int, action_id: str) -> None:
    url = miniwob.url(step["page"])
    # These pages are 160 pixels wide: twice as big a person can read them.
    _open(desktop, url, epoch, action_id, scale=2)
    script = miniwob.start_script(step["seed"])
    _until(lambda: desktop.evaluate(script), f"{url} to start its episode")


def _open_url(desktop: Desktop, step: Mapping[str, Any], epoch: int, action_id: str) -> None:
    _open(desktop, step["url"], epoch, action_id)


def _open(desktop: Desktop, url: str, epoch: int, action_id: str, *, scale: int = 1) -> None:
    """Show `url` and wait until it has loaded; raises SetupFailed if it can't be.

    `scale` is that of a browser started for it; one that runs already keeps its own.
    """
    if _has_page(desktop):
        desktop.perform(Navigate(url), epoch=epoch, action_id=action_id)
    else:
        argv = ["browser", f"--force-device-scale-factor={scale}", url]
        desktop.launch(argv, epoch=epoch, action_id=action_id)
    state: list[str] = []

    def loaded() -> bool:
        found = desktop.evaluate("[document.readyState, location.protocol]")
        state[:] = [str(part) for part in found] if isinstance(found, list) else []
        return len(state) == 2 and state[0] == "complete"

    _until(loaded, f"{url} to load")
    if state[1] == "chrome-error:":
        raise SetupFailed(f"{url} can't be opened on this desktop")


def _has_page(desktop: Desktop) -> bool:
    try:
        return bool(desktop.evaluate("true"))
    except ActionFailed:
        return False


def _launch(desktop: Desktop, step: Mapping[str, Any], epoch: int, action_id: str) -> None:
    """Start a program and wait for the screen to change, which is its window."""
    before = desktop.observe().png
    desktop.launch(step["argv"], epoch=epoch, action_id=action_id)
    deadline = time.monotonic() + _WINDOW_WITHIN_S
    # A program without a window changes nothing: that is no failure.
    while desktop.observe().png == before and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    desktop.settle()


def _write_file(desktop: Desktop, step: Mapping[str, Any], epoch: int, action_id: str) -> None:
    desktop.write_file(step["path"], step["text"].encode(), epoch=epoch)


def _family(desktop: Desktop, step: Mapping[str, Any], epoch: int, action_id: str) -> None:
    family, task = families.task(step["task"])
    family.setup(desktop, task, step["seed"], epoch=epoch)


_STEPS: dict[str, Callable[[Desktop, Mapping[str, Any], int, str], None]] = {
    "family": _family,
    "miniwob": _miniwob,
    "open_url": _open_url,
    "launch": _launch,
    "write_file": _write_file,
}


def _until(ready: Callable[[], object], what: str) -> None:
    """Ask until the answer is true; a page that is not there yet is a reason to ask again."""
    deadline = time.monotonic() + _READY_WITHIN_S
    refused = ""
    while True:
        try:
            if ready():
                return
        except ActionFailed as error:
            refused = f": {error}"
        if time.monotonic() > deadline:
            raise SetupFailed(f"waited {_READY_WITHIN_S:g} s for {what}{refused}")
        time.sleep(_POLL_S)


# -- judging -----------------------------------------------------------------------------------


def _file(desktop: Desktop, path: str, word: str, right: Callable[[str], bool]) -> Verdict:
    try:
        text = desktop.read_file(path).decode(errors="replace")
    except ActionFailed as error:
        return Verdict(0.0, str(error), False)
    # Editors end a file with a newline, people do not count it.
    if right(text) or right(text.removesuffix("\n")):
        return Verdict(1.0, f"{path} {word} what it should", True)
    return Verdict(0.0, f"{path} does not have what it should: it holds {text[:200]!r}", False)


def _shell(desktop: Desktop, command: str, expect: str) -> Verdict:
    epoch = int(str(desktop.health()["epoch"]))
    action_id = f"verify-{time.time_ns()}"
    result = desktop.shell(command, epoch=epoch, action_id=action_id)
    output = result.output.strip()
    if output == expect.strip():
        return Verdict(1.0, f"the command printed {output[:200]!r}", True)
    return Verdict(0.0, f"the command printed {output[:200]!r}, not {expect[:200]!r}", False)


# -- checking ----------------------------------------------------------------------------------


def _problems(step: object, kinds: Mapping[str, Mapping[str, type]]) -> list[str]:
    if not isinstance(step, Mapping):
        return ["must be an object"]
    kind = step.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        return [f"kind {kind!r} is unknown; known: {', '.join(kinds)}"]
    fields = kinds[kind]
    found = [f"{kind} has no field {name!r}" for name in step if name not in {"kind", *fields}]
    for name, wanted in fields.items():
        value = step.get(name)
        if name not in step:
            found.append(f"{kind}.{name} is missing")
        elif not isinstance(value, wanted) or isinstance(value, bool):
            found.append(f"{kind}.{name} must be {_WORDS[wanted]}")
    if found:
        return found
    if kind == "launch" and not (step["argv"] and all(isinstance(a, str) for a in step["argv"])):
        return ["launch.argv must be a list of texts, not empty"]
    if kind == "family":
        try:
            families.task(step["task"])
        except families.UnknownTask as error:
            return [f"family.task: {error}"]
    if kind == "miniwob" and "page" in fields and step["page"] not in miniwob.PAGES:
        return [f"miniwob has no page {step['page']!r} that can be judged here"]
    return []
