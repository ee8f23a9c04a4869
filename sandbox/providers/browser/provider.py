"""Browser pages as sandboxes for people and agents: one process, one headless browser, one page each.

Everything of a sandbox is in STATE/<name>/, as with the local desktops: the two sockets, the record
that lets another process adopt it, the log, and the cause of its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.desktop import GuestScreen
from sandbox.dial import Gateway
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import records
from sandbox.providers.browser.process import program
from sandbox.providers.browser.spec import BrowserMissing
from sandbox.providers.served import Served, left

_START_S, _STOP_S = 30.0, 8.0


class BrowserProvider:
    """Starts, finds and stops pages below one folder; several processes may use it at once."""

    name = "browser"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        self._processes = Served(
            self._state, provider=self.name, module="sandbox.providers.browser.guest"
        )

    def start(self, spec: SandboxSpec) -> Handle:
        """Bring a page up, empty; about a second. Raises ProvisionFailed with the end of the log."""
        self._check(spec)
        handle = self._processes.claim(spec.name)
        words = ["--size", str(spec.width), str(spec.height)]
        for guest, host in spec.shared.items():
            words += ["--shared", guest.rstrip("/"), str(host).rstrip("/")]
        try:
            handle = self._processes.launch(handle, words, seconds=_START_S)
            self.connect(handle).close()
        except BaseException as error:
            self._clear(spec.name)
            if isinstance(error, DesktopLost):
                raise ProvisionFailed(f"{spec.name}: the page: {error}") from error
            raise
        return handle

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost with the cause of its end."""
        if not self.alive(handle):
            raise DesktopLost(
                f"{handle.name} does not run any more: {self._processes.cause(handle)}"
            )
        return GuestScreen(handle, cause=lambda: left(handle))

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the page behind `handle` on another host; raises DesktopLost, StaleLease."""
        return GuestScreen(handle, gateway=gateway)

    def alive(self, handle: Handle) -> bool:
        """Whether the very process of `handle` still runs."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """End the page with its browser and remove its folder; fine if it is gone already."""
        if not records.given_on(self._state / handle.name, handle):
            self._clear(handle.name)

    def running(self) -> list[Handle]:
        """Return what has a folder here, also what died or never came up: stop() clears it."""
        return records.found(self._state, self.name)

    def _check(self, spec: SandboxSpec) -> None:
        try:
            program()
        except BrowserMissing as error:
            raise ProvisionFailed(str(error)) from error
        records.check(spec, provider=self.name, socket=self._state / spec.name / "guest.sock")

    def _clear(self, name: str) -> None:
        """End what runs, gently first, wait for it to be gone, then remove what it left."""
        self._processes.end(name, gently=_STOP_S / 2, seconds=_STOP_S)
        folder = self._state / name
        for pid in _browsers(folder):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # each browser leads a group of its own
        deadline = time.monotonic() + _STOP_S
        while _browsers(folder):
            if time.monotonic() > deadline:
                raise DesktopLost(f"the browser of {folder.name} survives SIGKILL")
            time.sleep(0.01)
        records.remove(folder)


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
