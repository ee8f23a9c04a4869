"""A supervisor of small processes, run as a process of its own: it ends everything below itself."""

from __future__ import annotations

import dataclasses
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from config.embedded import supervisor
from config.embedded.__main__ import say
from config.embedded.parts import Part
from config.embedded.service import StartFailed
from config.embedded.state import State

supervisor.PAUSE_S = 0.01


def part(name: str, script: str, **rest: object) -> Part:
    return Part(
        name, ["sh", "-c", script], {"PATH": os.environ["PATH"]}, lambda log: "up" in log, **rest
    )  # type: ignore[arg-type]


def failing_first(times: int) -> Callable[[], None]:
    """Return what fails as a full disk does, but for the first and after `times` calls."""
    calls = iter(range(times + 1))

    def prepare() -> None:
        if next(calls, 0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return prepare


def odd(log: str) -> bool:
    """Answer a probe, but break at the first."""
    probed.append(log)
    if len(probed) == 1:
        raise ValueError("an odd answer")
    return "up" in log


def broken(log: str) -> bool:
    raise ValueError("a broken probe")


probed: list[str] = []


def main(scenario: str, folder: str) -> None:
    state = State(Path(folder))
    state.prepare()
    steady = part("steady", f"setsid sleep 600 & echo $! > {folder}/orphan; echo up; wait")
    parts = {
        "watch": [
            part("first", "exit 0", once=True, layer=0),
            steady,
            part("late", "echo up; exec sleep 600", needs=("first", "steady")),
        ],
        "loop": [steady, part("broken", "echo up; echo no luck; exit 3", awaited=False)],
        "full-disk": [
            dataclasses.replace(part("writer", "echo up; exec sleep 600"), prepare=failing_first(2))
        ],
        "odd-probe": [
            dataclasses.replace(part("odd", "echo up; exec sleep 600"), ready=odd),
            dataclasses.replace(
                part("odder", "exec sleep 600", awaited=False, patience_s=1.0), ready=broken
            ),
        ],
        "failed-setup": [steady, part("setup", "echo cannot migrate; exit 4", once=True)],
    }[scenario]
    with state.hold():
        try:
            supervisor.Supervisor(parts, state, say).run(lambda: say("usable"))
        except StartFailed as error:
            say(f"failed: {error}")
    say("stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
