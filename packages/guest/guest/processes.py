"""Programs as whole sessions: what one started ends with it, in whichever process group it is."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TRIES = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Where the user's programs run: the home folder, and their environment."""

    home: Path = field(default_factory=Path.home)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def variables(self, **more: str) -> dict[str, str]:
        return {**self.environment, **more}


def end(process: subprocess.Popen[bytes]) -> int:
    """Kill `process`, the leader of a session, with all of the session; return its exit code.

    What made a session of its own (a daemon) goes on, as on any computer.
    """
    if process.returncode is not None:
        return process.returncode
    # While the leader is not reaped, no other process can get its number.
    for _ in range(_TRIES):
        alive = _members(process.pid)
        if not alive:
            break
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        # A process that was being forked meanwhile is found in the next round.
        select.select([], [], [], 0.002)
    return process.wait()


def asleep(pid: int) -> bool:
    """Whether a process waits for something."""
    try:
        return _status(pid)[0] == b"S"
    except OSError:
        return False


def _status(pid: int | str) -> list[bytes]:
    """Return the words of a process's stat from its state on; raises OSError if it is gone."""
    # The name in brackets may hold anything; what follows the last one is numbers.
    return Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()


def _members(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = _status(entry.name)
            except OSError:
                continue
            if int(words[3]) == session and words[0] not in (b"Z", b"X"):
                found.append(int(entry.name))
    return found
