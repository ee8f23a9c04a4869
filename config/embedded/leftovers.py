"""Finding and ending what a supervisor started, grandchildren and earlier supervisors' children included."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

MARK = "TANDEM_SUPERVISOR"  # in the environment of everything we start: the state folder
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose parent dies, so that none gets away."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(known: Iterable[int]) -> None:
    """Bury adopted processes that have ended; `known` are left to their Popen."""
    ours = set(known)
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in ours:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(found.si_pid, os.WNOHANG)


def _parents() -> dict[int, tuple[int, str]]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = (int(fields[1]), fields[0])
    return found


def descendants(pid: int) -> set[int]:
    """Return every living process below `pid`."""
    parents = _parents()
    below = {pid}
    grown = True
    while grown:
        new = {child for child, (parent, _) in parents.items() if parent in below} - below
        below |= new
        grown = bool(new)
    return {child for child in below - {pid} if parents[child][1] != "Z"}


def marked(root: Path) -> set[int]:
    """Return the living processes that a supervisor of the state folder `root` started, but us."""
    mark = f"{MARK}={root}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
    return found


def end(pids: set[int], *, patience_s: float) -> set[int]:
    """End processes: PostgreSQL's fast shutdown, others' SIGTERM, after `patience_s` SIGKILL.

    Returns those that needed SIGKILL.
    """
    for pid in pids:
        _signal(pid, signal.SIGINT if _name(pid) == "postgres" else signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and any(map(_alive, pids)):
        reap(())
        time.sleep(0.05)
    stubborn = {pid for pid in pids if _alive(pid)}
    for pid in stubborn:
        _signal(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(map(_alive, stubborn)):
        reap(())
        time.sleep(0.02)
    return stubborn


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
