"""Phones as sandboxes: one process of ours for each phone that is held, as with pages.

Everything of a sandbox is in STATE/<name>/: two sockets, the record that lets another process adopt
it, the log, the cause of its end. The phones that may be used are listed beside STATE, in
phones/devices.toml. A phone has the screen, the memory and the network that it has, whatever was asked
for, and sees no folder of its host.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sandbox.desktop import GuestScreen
from sandbox.dial import Gateway
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import records
from sandbox.providers.android import devices
from sandbox.providers.served import Served

_START_S, _STOP_S = 240.0, 10.0


class AndroidProvider:
    """Claims, finds and gives back phones; several processes may use it at once."""

    name = "android"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        self._home = self._state.parent / "phones"
        self._processes = Served(
            self._state, provider=self.name, module="sandbox.providers.android.guest"
        )

    def start(self, spec: SandboxSpec) -> Handle:
        """Claim a free phone and bring it to its home screen. Raises ProvisionFailed with the cause."""
        self._check(spec)
        handle = self._processes.claim(spec.name)
        try:
            words = ["--home", str(self._home)]
            handle = self._processes.launch(handle, words, seconds=_START_S)
            self.connect(handle).close()
        except BaseException as error:
            self._clear(spec.name)
            if isinstance(error, DesktopLost):
                raise ProvisionFailed(f"{spec.name}: the phone: {error}") from error
            raise
        return handle

    def connect(self, handle: Handle) -> Desktop:
        """Return the phone behind `handle`; raises DesktopLost with the cause of its end."""
        if not self.alive(handle):
            raise DesktopLost(
                f"{handle.name} does not run any more: {self._processes.cause(handle)}"
            )
        return GuestScreen(handle)

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the phone behind `handle` on another host; raises DesktopLost, StaleLease."""
        return GuestScreen(handle, gateway=gateway)

    def screen(self, handle: Handle) -> tuple[int, int]:
        """Return the size of the phone's screen in pixels; raises DesktopLost."""
        desktop = self.connect(handle)
        try:
            return desktop.width, desktop.height
        finally:
            desktop.close()

    def alive(self, handle: Handle) -> bool:
        """Whether the very process of `handle` still runs; it ends when its phone is lost."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """Give the phone back and remove the folder; fine if it is gone already."""
        if not records.given_on(self._state / handle.name, handle):
            self._clear(handle.name)

    def running(self) -> list[Handle]:
        """Return what has a folder here, also what died or never came up: stop() clears it."""
        return records.found(self._state, self.name)

    def _check(self, spec: SandboxSpec) -> None:
        if shutil.which("adb") is None:
            raise ProvisionFailed("adb is missing: apt-get install adb")
        devices.load(self._home / "devices.toml")
        records.check(spec, provider=self.name, socket=self._state / spec.name / "guest.sock")

    def _clear(self, name: str) -> None:
        """End the phone's process, gently first so that it gives the phone back; remove the folder."""
        self._processes.end(name, gently=_STOP_S, seconds=_STOP_S)
        records.remove(self._state / name)
