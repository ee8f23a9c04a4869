"""Phones as sandboxes: one process of ours for each phone that is held, as with pages.

Everything of a sandbox is in STATE/<name>/: two sockets, the record that lets another process adopt
it, the log, the cause of its end. The phones that may be used are listed beside STATE, in
phones/devices.toml. A phone has the screen, the memory and the network that it has, whatever was asked
for, and sees no folder of its host.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import sandbox
from sandbox.desktop import GuestScreen
from sandbox.dial import Gateway
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import records
from sandbox.providers.android import devices

_START_S, _STOP_S = 240.0, 10.0
_LOG_TAIL = 1500
_ROOT = Path(sandbox.__file__).resolve().parent.parent


class AndroidProvider:
    """Claims, finds and gives back phones; several processes may use it at once."""

    name = "android"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        self._home = self._state.parent / "phones"
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, spec: SandboxSpec) -> Handle:
        """Claim a free phone and bring it to its home screen. Raises ProvisionFailed with the cause."""
        self._check(spec)
        folder, boot_id = self._state / spec.name, uuid.uuid4().hex
        try:
            folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise ProvisionFailed(f"a sandbox {spec.name} exists already: stop it first") from None
        handle = Handle(
            provider=self.name,
            name=spec.name,
            boot_id=boot_id,
            guest_socket=str(folder / "guest.sock"),
            rfb_socket=str(folder / "rfb.sock"),
        )
        try:
            records.save(folder, records.Record(handle, ()))
            handle = replace(handle, pid=self._launch(spec, folder, boot_id))
            records.save(folder, records.Record(handle, ()))
            self._wait(folder, handle)
            self.connect(handle).close()
        except BaseException as error:
            self._clear(folder)
            if isinstance(error, DesktopLost):
                raise ProvisionFailed(f"{spec.name}: the phone: {error}") from error
            raise
        return handle

    def connect(self, handle: Handle) -> Desktop:
        """Return the phone behind `handle`; raises DesktopLost with the cause of its end."""
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} does not run any more: {_cause(handle)}")
        return GuestScreen(handle)

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the phone behind `handle` on another host; raises DesktopLost, StaleLease."""
        return GuestScreen(handle, gateway=gateway)

    def alive(self, handle: Handle) -> bool:
        """Whether the very process of `handle` still runs; it ends when its phone is lost."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """Give the phone back and remove the folder; fine if it is gone already."""
        folder = self._state / handle.name
        record = records.load(folder)
        if record is not None and handle.boot_id and record.handle.boot_id != handle.boot_id:
            return  # that one is gone; the name has been given to another since
        self._clear(folder)

    def running(self) -> list[Handle]:
        """Return what has a folder here, also what died or never came up: stop() clears it."""
        return records.found(self._state, self.name)

    def _check(self, spec: SandboxSpec) -> None:
        if shutil.which("adb") is None:
            raise ProvisionFailed("adb is missing: apt-get install adb")
        devices.load(self._home / "devices.toml")
        records.check(spec, provider=self.name, socket=self._state / spec.name / "guest.sock")

    def _launch(self, spec: SandboxSpec, folder: Path, boot_id: str) -> int:
        command = [
            sys.executable, "-m", "sandbox.providers.android.guest", "--folder", str(folder),
            "--home", str(self._home), "--boot-id", boot_id, "--name", spec.name,
        ]  # fmt: skip
        with (folder / "log.txt").open("wb") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=_ROOT,
                start_new_session=True,
            )  # fmt: skip
        self._started[boot_id] = process
        return process.pid

    def _wait(self, folder: Path, handle: Handle) -> None:
        deadline = time.monotonic() + _START_S
        while not (folder / "ready").exists():
            if not self.alive(handle):
                raise ProvisionFailed(f"{handle.name}: {_cause(handle)}")
            if time.monotonic() > deadline:
                raise ProvisionFailed(
                    f"{handle.name} was not ready within {_START_S:g} s: {_tail(folder)}"
                )
            time.sleep(0.01)

    def _clear(self, folder: Path) -> None:
        """End the phone's process, gently first so that it gives the phone back; remove the folder."""
        record = records.load(folder)
        if record is not None:
            self._kill(record.handle)
            self._started.pop(record.handle.boot_id, None)
        records.remove(folder)

    def _kill(self, handle: Handle) -> None:
        process = self._started.get(handle.boot_id)
        pid = handle.pid or (process.pid if process is not None else 0)
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + _STOP_S
            if records.runs(pid, handle.boot_id):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            while records.runs(pid, handle.boot_id) and time.monotonic() < deadline:
                if process is not None:
                    process.poll()
                time.sleep(0.005)
        if records.runs(pid, handle.boot_id):
            raise DesktopLost(f"{handle.name}: process {pid} survives SIGKILL")
        if process is not None:
            process.wait()


def _cause(handle: Handle) -> str:
    """Say why its process ended: its own account, or the end of its log."""
    folder = Path(handle.guest_socket).parent
    with contextlib.suppress(FileNotFoundError):
        return (folder / "cause").read_text()
    return f"it left no cause, so it was killed or stopped; {_tail(folder)}"


def _tail(folder: Path) -> str:
    try:
        text = (folder / "log.txt").read_text(errors="replace")
    except FileNotFoundError:
        return "no log"
    return text[-_LOG_TAIL:].strip() or "the log is empty"
