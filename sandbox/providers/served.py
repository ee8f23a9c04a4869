"""A sandbox that is one process of this host: it serves the guest and the screen from its folder.

The process writes `ready` when it serves and `cause` when it ends by itself; what it prints is in
log.txt. It outlives whoever started it, and is known again by the boot_id on its command line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import sandbox
from sandbox.provider import DesktopLost, Handle, ProvisionFailed
from sandbox.providers import records

_ROOT = Path(sandbox.__file__).resolve().parent.parent
_LOG_TAIL = 1500


class Served:
    """Starts and ends the processes of one provider, `python -m MODULE` each, below one folder."""

    def __init__(self, state: Path, *, provider: str, module: str) -> None:
        self._state, self._provider, self._module = state, provider, module
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def claim(self, name: str) -> Handle:
        """Make the folder of a sandbox and keep its record before it has a process.

        Whoever finds the folder of an interrupted start can clear it. Raises ProvisionFailed.
        """
        folder = self._state / name
        try:
            folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise ProvisionFailed(f"a sandbox {name} exists already: stop it first") from None
        handle = Handle(
            provider=self._provider,
            name=name,
            boot_id=uuid.uuid4().hex,
            guest_socket=str(folder / "guest.sock"),
            rfb_socket=str(folder / "rfb.sock"),
        )
        records.save(folder, records.Record(handle, ()))
        return handle

    def launch(self, handle: Handle, words: Sequence[str], *, seconds: float) -> Handle:
        """Start the process and wait until it serves; raises ProvisionFailed with its cause."""
        folder = self._state / handle.name
        command = [
            sys.executable, "-m", self._module, "--folder", str(folder),
            "--boot-id", handle.boot_id, "--name", handle.name, *words,
        ]  # fmt: skip
        with (folder / "log.txt").open("wb") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=_ROOT,
                start_new_session=True,
            )  # fmt: skip
        self._started[handle.boot_id] = process
        handle = replace(handle, pid=process.pid)
        records.save(folder, records.Record(handle, ()))
        deadline = time.monotonic() + seconds
        while not (folder / "ready").exists():
            if not records.runs(handle.pid, handle.boot_id):
                raise ProvisionFailed(
                    f"{handle.name} ended while starting: {self.cause(handle)}; {_tail(folder)}"
                )
            if time.monotonic() > deadline:
                raise ProvisionFailed(
                    f"{handle.name} was not ready within {seconds:g} s: {_tail(folder)}"
                )
            time.sleep(0.01)
        return handle

    def cause(self, handle: Handle) -> str:
        """Say why it ended: its own account, or what the kernel says of a child of ours."""
        if said := left(handle):
            return said
        process = self._started.get(handle.boot_id)
        status = process.poll() if process is not None else None
        if status is not None and status < 0:
            return f"its process was killed by signal {-status} ({signal.Signals(-status).name})"
        if status is not None:
            return f"its process ended with code {status}"
        return "it left no cause, so it was killed or stopped"

    def end(self, name: str, *, gently: float, seconds: float) -> None:
        """End the process, `gently` seconds after SIGTERM by SIGKILL; the folder stays.

        Raises DesktopLost if it survives that for `seconds`.
        """
        record = records.load(self._state / name)
        if record is None:
            return
        boot_id = record.handle.boot_id
        process = self._started.get(boot_id)
        pid = record.handle.pid or (process.pid if process is not None else 0)
        for number, most in ((signal.SIGTERM, gently), (signal.SIGKILL, seconds)):
            deadline = time.monotonic() + most
            if records.runs(pid, boot_id):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            while records.runs(pid, boot_id) and time.monotonic() < deadline:
                if process is not None:
                    process.poll()
                time.sleep(0.005)
        if records.runs(pid, boot_id):
            raise DesktopLost(f"{name}: process {pid} survives SIGKILL")
        if process is not None:
            process.wait()
        self._started.pop(boot_id, None)


def left(handle: Handle) -> str:
    """Return the cause of its end that a process has left; "" if it left none."""
    with contextlib.suppress(FileNotFoundError):
        return (Path(handle.guest_socket).parent / "cause").read_text()
    return ""


def _tail(folder: Path) -> str:
    try:
        text = (folder / "log.txt").read_text(errors="replace")
    except FileNotFoundError:
        return "no log"
    return text[-_LOG_TAIL:].strip() or "the log is empty"
