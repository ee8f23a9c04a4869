"""A trainer or a policy server as a process: one per directory, found again after its parent died.

It holds a lock on its directory for as long as it lives, inherited through exec, and writes its own
pid before it becomes what it is: there is no moment at which it can be lost.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOCK = "process.lock"
PID = "process.pid"
LOG = "log.txt"
# Lower priority than the desktops and the people on the same machine.
SHELL = 'echo $$ > "$0/process.pid" && exec nice -n 5 "$@"'


class Gone(Exception):
    """The process that held the directory could not be found in time."""


@dataclass(slots=True)
class Process:
    """A living (or just ended) process; `child` is None where another process started it."""

    directory: Path
    pid: int
    child: subprocess.Popen[bytes] | None = None

    def ended(self) -> bool:
        """Whether it has ended; reaps it where it is our child."""
        if self.child is not None:
            return self.child.poll() is not None
        return not held(self.directory)

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative for a signal; None where only its parent could know."""
        return self.child.returncode if self.child is not None else None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to its process group; does nothing where it has ended."""
        if not self.ended():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass  # it ended between the question and the signal


def held(directory: Path) -> bool:
    """Whether a process lives in `directory`."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def start(
    directory: Path, module: str, arguments: Sequence[str], *, extra: Mapping[str, str]
) -> Process:
    """Start `python -m MODULE ARGUMENTS` in a session of its own, or adopt what lives there.

    `extra` goes into its environment: what would be a secret on a command line.
    """
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return adopt(directory)
        (directory / PID).unlink(missing_ok=True)
        with open(directory / LOG, "ab") as log:
            child = subprocess.Popen(
                ["/bin/sh", "-c", SHELL, str(directory), sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, pass_fds=(descriptor,), cwd=Path(__file__).parents[2],
                env={**os.environ, **extra},
            )  # fmt: skip
        return Process(directory, child.pid, child)
    finally:
        os.close(descriptor)  # the child's copy keeps the lock


def adopt(directory: Path, *, deadline_s: float = 5.0) -> Process:
    """Return the process that somebody else started in `directory`; raises Gone."""
    until = time.monotonic() + deadline_s
    while held(directory):
        try:
            return Process(directory, int((directory / PID).read_text()))
        except (FileNotFoundError, ValueError):
            if time.monotonic() > until:
                raise Gone(f"{directory} is locked, but {PID} does not say by whom") from None
            time.sleep(0.02)
    raise Gone(f"no process lives in {directory}")


def log_tail(directory: Path, *, size: int = 8000) -> str:
    """Return the end of the log, whole lines, at most `size` bytes."""
    try:
        with open(directory / LOG, "rb") as log:
            length = log.seek(0, os.SEEK_END)
            log.seek(max(0, length - size))
            text = log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return text if length <= size else text.split("\n", 1)[-1]
