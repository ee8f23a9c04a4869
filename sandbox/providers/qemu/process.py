"""QEMU as a process: started so that it outlives us, killed so that nothing stays, and its logs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.provider import DesktopLost
from sandbox.providers import records
from sandbox.providers.local import limits

_START_S = 10.0
_STOP_S = 10.0
_TAIL = 1500
_MAX_FILE = 64 << 30  # of one file that QEMU writes: the disk with its snapshots


@dataclass(frozen=True, slots=True)
class About:
    """What a restored machine is started and told again: its command, its screen in pixels, limits.

    Kept by us: what the process says of itself is the guest's word once it has broken out.
    """

    width: int
    height: int
    limits: str
    memory_mb: int
    command: list[str]


def write(folder: Path, about: About) -> None:
    (folder / "about.json").write_text(json.dumps(asdict(about)))


def read(folder: Path) -> About:
    return About(**json.loads((folder / "about.json").read_text()))


def launch(command: Sequence[str], folder: Path, groups: Sequence[str]) -> int:
    """Start QEMU in its groups, away from our terminal; return its pid."""
    (folder / "pid").unlink(missing_ok=True)  # of the process before a restore
    join = "".join(f"echo $$ > '{group}/cgroup.procs'; " for group in groups)
    enter = f"set -e; echo $$ > '{folder}/pid'; {join}exec \"$@\""
    bounds = ["prlimit", "--core=0", "--nofile=256", f"--fsize={_MAX_FILE}", "--"]
    with (folder / "qemu.log").open("wb") as out:
        subprocess.run(
            ["setsid", "--fork", "sh", "-c", enter, "enter", *bounds, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            check=True,
        )
    deadline = time.monotonic() + _START_S
    while not (pid := _pid(folder)):
        if time.monotonic() > deadline:
            raise DesktopLost(f"QEMU did not start within {_START_S:g} s")
        time.sleep(0.002)
    return pid


def kill(folder: Path, start_id: str) -> None:
    """Kill the machine and wait until it is gone; raises DesktopLost if it stays."""
    pid = _pid(folder)
    if not records.runs(pid, start_id):
        return
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if records.runs(pid, start_id):  # else the number is another's by now
            signal.pidfd_send_signal(process, signal.SIGKILL)
            # Until it is gone for good: it holds the lock on its disk for longer than its name.
            if not select.select([process], [], [], _STOP_S)[0]:
                raise DesktopLost(f"QEMU {pid} survives SIGKILL")
    finally:
        os.close(process)


def log(folder: Path) -> str:
    """Return the end of what QEMU and the machine's console said."""
    said = ""
    for path in (folder / "qemu.log", folder / "run" / "serial.log"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            said += file.read(_TAIL).decode(errors="replace")
    return said.strip()[-_TAIL:]


def cause(folder: Path, groups: Sequence[str]) -> str:
    """Return why a machine is gone, from what it left: its panic, QEMU's own words, its limits."""
    said = log(folder)
    for line in said.splitlines():
        if "Kernel panic" in line:
            return line.strip()
    limited = "; ".join(limits.causes(tuple(Path(group) for group in groups)))
    return limited or said or "QEMU was killed from outside: it left no word"


def _pid(folder: Path) -> int:
    try:
        return int((folder / "pid").read_text() or 0)
    except FileNotFoundError:
        return 0
