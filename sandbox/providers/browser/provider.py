"""Browser pages as sandboxes for people and agents: one process, one headless browser, one page each.

Everything of a sandbox is in STATE/<name>/, as with the local desktops: the two sockets, the record
that lets another process adopt it, the log, and the cause of its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import sandbox
from sandbox.desktop import GuestScreen
from sandbox.dial import Gateway
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import records
from sandbox.providers.browser.process import program
from sandbox.providers.browser.spec import BrowserMissing

_START_S, _STOP_S = 30.0, 8.0
_LOG_TAIL = 1500
_ROOT = Path(sandbox.__file__).resolve().parent.parent


class BrowserProvider:
    """Starts, finds and stops pages below one folder; several processes may use it at once."""

    name = "browser"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, spec: SandboxSpec) -> Handle:
        """Bring a page up, empty; about a second. Raises ProvisionFailed with the end of the log."""
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
                raise ProvisionFailed(f"{spec.name}: the page: {error}") from error
            raise
        return handle

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost with the cause of its end."""
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} does not run any more: {self._cause(handle)}")
        return GuestScreen(handle, cause=lambda: _left(handle))

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the page behind `handle` on another host; raises DesktopLost, StaleLease."""
        return GuestScreen(handle, gateway=gateway)

    def alive(self, handle: Handle) -> bool:
        """Whether the very process of `handle` still runs."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """End the page with its browser and remove its folder; fine if it is gone already."""
        record = records.load(self._state / handle.name)
        if record is not None and handle.boot_id and record.handle.boot_id != handle.boot_id:
            return  # that one is gone; the name has been given to another since
        self._clear(self._state / handle.name)

    def running(self) -> list[Handle]:
        """Return what has a folder here, also what died or never came up: stop() clears it."""
        return records.found(self._state, self.name)

    # -- starting ----------------------------------------------------------------------------

    def _check(self, spec: SandboxSpec) -> None:
        try:
            program()
        except BrowserMissing as error:
            raise ProvisionFailed(str(error)) from error
        records.check(spec, provider=self.name, socket=self._state / spec.name / "guest.sock")

    def _launch(self, spec: SandboxSpec, folder: Path, boot_id: str) -> int:
        command = [
            sys.executable, "-m", "sandbox.providers.browser.guest", "--folder", str(folder),
            "--boot-id", boot_id, "--name", spec.name,
            "--size", str(spec.width), str(spec.height),
        ]  # fmt: skip
        for guest, host in spec.shared.items():
            command += ["--shared", guest.rstrip("/"), str(host).rstrip("/")]
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
                raise ProvisionFailed(
                    f"{handle.name} ended while starting: {self._cause(handle)}; {_tail(folder)}"
                )
            if time.monotonic() > deadline:
                raise ProvisionFailed(
                    f"{handle.name} was not ready within {_START_S:g} s: {_tail(folder)}"
                )
            time.sleep(0.01)

    # -- ending ------------------------------------------------------------------------------

    def _cause(self, handle: Handle) -> str:
        """Say why it ended: the page's own account, or what the kernel says of a child of ours."""
        if cause := _left(handle):
            return cause
        process = self._started.get(handle.boot_id)
        status = process.poll() if process is not None else None
        if status is not None and status < 0:
            return f"its process was killed by signal {-status} ({signal.Signals(-status).name})"
        if status is not None:
            return f"its process ended with code {status}"
        return "it left no cause, so it was killed or stopped"

    def _clear(self, folder: Path) -> None:
        """End what runs, gently first, wait for it to be gone, then remove what it left."""
        record = records.load(folder)
        if record is not None:
            self._kill(record.handle)
            self._started.pop(record.handle.boot_id, None)
        for pid in _browsers(folder):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # each browser leads a group of its own
        deadline = time.monotonic() + _STOP_S
        while _browsers(folder):
            if time.monotonic() > deadline:
                raise DesktopLost(f"the browser of {folder.name} survives SIGKILL")
            time.sleep(0.01)
        records.remove(folder)

    def _kill(self, handle: Handle) -> None:
        process = self._started.get(handle.boot_id)
        pid = handle.pid or (process.pid if process is not None else 0)
        for number, seconds in ((signal.SIGTERM, _STOP_S / 2), (signal.SIGKILL, _STOP_S)):
            deadline = time.monotonic() + seconds
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


def _left(handle: Handle) -> str:
    """Return the cause of its end that a page's process has left; "" if it left none."""
    with contextlib.suppress(FileNotFoundError):
        return (Path(handle.guest_socket).parent / "cause").read_text()
    return ""


def _browsers(folder: Path) -> list[int]:
    """Return the browsers (not their children) whose profile is in `folder`."""
    return list(_main_processes(os.fsencode(f"--user-data-dir={folder}/")))


def _main_processes(profile: bytes) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            child = any(word.startswith(b"--type=") for word in words)
            if not child and any(word.startswith(profile) for word in words):
                yield int(entry.name)


def _tail(folder: Path) -> str:
    try:
        text = (folder / "log.txt").read_text(errors="replace")
    except FileNotFoundError:
        return "no log"
    return text[-_LOG_TAIL:].strip() or "the log is empty"
