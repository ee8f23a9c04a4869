"""Desktops on this host: Xvnc, a window manager and a guest inside bubblewrap, one per sandbox.

Everything of a sandbox is in STATE/<name>/: the run folder with its two sockets, the record that
lets another process adopt it, and the log. A sandbox outlives the process that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from sandbox.desktop import GuestDesktop
from sandbox.dial import Gateway
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import folder, records
from sandbox.providers.local import limits, outlet
from sandbox.providers.local.jail import GUEST_UID, Jail

_PROGRAMS = {
    "bwrap": "bubblewrap",
    "Xvnc": "tigervnc-standalone-server",
    "openbox": "openbox",
    "dbus-daemon": "dbus-daemon",
    "prlimit": "util-linux",
}
_FIRST_UID, _UIDS = 60_000, 500
_START_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 5.0
_LOG_TAIL = 1500


class LocalProvider:
    """Starts, finds and stops desktops below one folder; several processes may use it at once."""

    name = "local"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()

    def start(self, spec: SandboxSpec) -> Handle:
        """Bring a desktop up; about 0.7 s. Raises ProvisionFailed with the stage and the log."""
        self._check(spec)
        target = self._state / spec.name
        boot_id = uuid.uuid4().hex
        user = folder.own_uid(_FIRST_UID, _UIDS) if os.geteuid() == 0 else nullcontext()
        with user as uid, folder.begun(target, lambda: self._clear(target)):
            password = folder.fill(target, owner=uid, uid=GUEST_UID)
            limited = limits.create(spec, group=f"{spec.name}-{boot_id[:12]}")
            handle = Handle(
                provider=self.name,
                name=spec.name,
                boot_id=boot_id,
                guest_socket=str(target / "run" / "guest.sock"),
                rfb_socket=str(target / "run" / "rfb.sock"),
                rfb_password=password,
            )
            groups = tuple(str(group) for group in limited.groups)
            # Before there is a process: whoever finds the folder of an interrupted start can clear it.
            records.save(target, records.Record(handle, groups))
            outlet.start(spec, target, boot_id)
            handle = replace(handle, pid=_launch(Jail(spec, target, boot_id, uid, limited)))
            records.save(target, records.Record(handle, groups))
            self.connect(handle).close()
        return handle

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost."""
        if not self.alive(handle):
            why = "; ".join(self.causes(handle)) or _log_tail(self._state / handle.name)[-200:]
            raise DesktopLost(f"{handle.name} does not run any more: {why}")
        return GuestDesktop(handle)

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the desktop behind `handle` on another host; raises DesktopLost, StaleLease."""
        return GuestDesktop(handle, gateway=gateway)

    def alive(self, handle: Handle) -> bool:
        """Whether the very process of `handle` still runs; says nothing of its guest."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """End the sandbox with every process in it, and remove its folder and limits."""
        if records.given_on(self._state / handle.name, handle):
            return
        self._clear(self._state / handle.name)

    def running(self) -> list[Handle]:
        """Return what has a folder here, also what died or never came up: stop() clears it."""
        return records.found(self._state, self.name)

    def log(self, handle: Handle) -> str:
        """Return the end of what the sandbox's session printed."""
        return _log_tail(self._state / handle.name)

    def causes(self, handle: Handle) -> list[str]:
        """Return which of its limits the sandbox has run into, in words."""
        record = records.load(self._state / handle.name)
        if record is None or record.handle.boot_id != handle.boot_id:
            return []
        return limits.causes(tuple(Path(group) for group in record.groups))

    def refused(self, handle: Handle) -> list[dict[str, object]]:
        """Return where the sandbox was not let: host, port, why, at (seconds since the epoch)."""
        return outlet.refused(self._state / handle.name)

    def _check(self, spec: SandboxSpec) -> None:
        for program, package in _PROGRAMS.items():
            if shutil.which(program) is None:
                raise ProvisionFailed(f"{program} is missing: apt-get install {package}")
        records.check(
            spec,
            provider=self.name,
            socket=self._state / spec.name / "run" / "guest.sock",
            networks=outlet.NETWORKS,
        )
        outlet.check(spec)

    def _clear(self, folder: Path) -> None:
        """Kill what runs, wait for it to be gone, then remove what it left."""
        record = records.load(folder)
        if record is not None:
            _kill(folder, record)
            outlet.stop(folder, record.handle.boot_id, record.handle.name)
            limits.remove(tuple(Path(group) for group in record.groups))
        records.remove(folder)


def _launch(jail: Jail) -> int:
    """Start the sandbox and wait until its guest serves; return the host's pid of its first process.

    That process is the init of a pid namespace: killing it kills every process inside.
    """
    log = jail.folder / "log.txt"
    with log.open("wb") as out:
        subprocess.run(
            jail.command(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            check=True,
        )

    def ended() -> str:
        outer = _number(jail.folder / "pid")
        return "" if not outer or records.runs(outer, jail.boot_id) else "its session"

    folder.wait_until_ready(
        jail.folder, ended, lambda: _log_tail(jail.folder), seconds=_START_TIMEOUT_S
    )
    return _init_pid(jail.folder)


def _kill(folder: Path, record: records.Record) -> None:
    """Kill the sandbox's processes and wait until they are gone; raises DesktopLost if they stay."""
    boot_id = record.handle.boot_id
    outer = _number(folder / "pid")
    known = (record.handle.pid, _init_pid(folder), outer)
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while True:
        # A guest may write into the memory of its first process, and so change its command line,
        # but not into that of bwrap outside, whose child it is, and which ends after it.
        inside = _children(outer) if records.runs(outer, boot_id) else []
        alive = inside or [pid for pid in known if records.runs(pid, boot_id)]
        if not alive:
            return
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise DesktopLost(f"{record.handle.name}: processes {alive} survive SIGKILL")
        time.sleep(0.005)


def _children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it has ended in between
        return []


def _init_pid(folder: Path) -> int:
    """Return the pid that bwrap reported; 0 if it got never so far."""
    try:
        return int(json.loads((folder / "info.json").read_text())["child-pid"])
    except (FileNotFoundError, ValueError):
        return 0


def _number(path: Path) -> int:
    try:
        return int(path.read_text() or 0)
    except FileNotFoundError:
        return 0


def _log_tail(folder: Path) -> str:
    try:
        text = (folder / "log.txt").read_text(errors="replace")
    except FileNotFoundError:
        return "no log"
    return text[-_LOG_TAIL:].strip() or "the log is empty"
