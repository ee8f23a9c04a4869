"""The remote provider: lends out registered machines, one sandbox each.

A start is only believed with proof: the guest must answer with a boot_id that was not given out
before. With a reset command that means the command has worked; a machine without one is given out
once, and again when somebody has started its guest anew. Network, memory and processes are the
machine's own affair, and folders of this host are not seen there.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sandbox.desktop import GuestDesktop
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import records, tunnel
from sandbox.providers.remote import machines
from sandbox.providers.remote.machines import Machine

_ASK_EVERY_S = 0.05


class RemoteProvider:
    """Lends machines of STATE/machines.toml; several processes may use it at once."""

    name = "remote"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        self._sandboxes = self._state / "sandboxes"

    def start(self, spec: SandboxSpec) -> Handle:
        """Take a free machine of the size asked for, reset it and prove it; raises ProvisionFailed."""
        folder = self._sandboxes / spec.name
        records.check(spec, provider=self.name, socket=folder / "run" / "guest.sock")
        machine = self._claim(spec, folder)
        try:
            return self._start(spec, machine, folder)
        except BaseException as error:
            self._clear(folder)
            if isinstance(error, DesktopLost):
                raise ProvisionFailed(f"{spec.name} on {machine.name}: {error}") from error
            raise

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost with what its tunnel met."""
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} is not connected any more: its tunnel ended")
        try:
            return GuestDesktop(handle)
        except DesktopLost as error:
            said = tunnel.log_tail(self._sandboxes / handle.name)
            raise DesktopLost(f"{error}; its tunnel says: {said}") from error

    def alive(self, handle: Handle) -> bool:
        """Whether the way to the machine is still open; says nothing of the machine."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """Cut the sandbox off and let the machine be claimed again; it is reset before that."""
        folder = self._sandboxes / handle.name
        if records.given_on(folder, handle):
            return
        self._clear(folder)

    def running(self) -> list[Handle]:
        """Return what has a machine, also what was cut off or never came up: stop() clears it."""
        return records.found(self._sandboxes, self.name)

    # -- one start -------------------------------------------------------------------------

    def _claim(self, spec: SandboxSpec, folder: Path) -> Machine:
        """Take a free machine for `spec`; from then on nobody else gets it."""
        known = machines.load(self._state / machines.FILE)
        with self._locked():
            if folder.exists():
                raise ProvisionFailed(f"a sandbox {spec.name} exists already: stop it first")
            taken = {_machine_of(other) for other in self._sandboxes.glob("*")}
            fits = [m for m in known if m.size == (spec.width, spec.height)]
            free = [m for m in fits if m.name not in taken]
            if not free:
                raise ProvisionFailed(
                    f"no free machine shows {spec.width}x{spec.height}: "
                    f"{len(fits)} of {len(known)} registered ones do, all lent out"
                )
            # The one that waited longest: what is left of the last user has been looked at since.
            spent = self._spent()
            machine = min(free, key=lambda m: list(spent).index(m.name) if m.name in spent else -1)
            folder.mkdir(parents=True, mode=0o700)
            (folder / "machine").write_text(machine.name)
        return machine

    def _start(self, spec: SandboxSpec, machine: Machine, folder: Path) -> Handle:
        if machine.reset:
            _reset(machine)
        boot_id = self._proved(machine)
        handle = Handle(
            provider=self.name,
            name=spec.name,
            boot_id=boot_id,
            guest_socket=str(folder / "run" / "guest.sock"),
            rfb_socket=str(folder / "run" / "rfb.sock"),
            rfb_password=machine.vnc_password,
        )
        records.save(folder, records.Record(handle, ()))
        handle = replace(handle, pid=tunnel.open_way(folder, machine.way, boot_id=boot_id))
        records.save(folder, records.Record(handle, ()))
        desktop = self.connect(handle)
        desktop.close()
        if (desktop.width, desktop.height) != machine.size:
            raise ProvisionFailed(
                f"machine {machine.name} shows {desktop.width}x{desktop.height}; "
                f"{machines.FILE} says {machine.size[0]}x{machine.size[1]}"
            )
        return handle

    def _proved(self, machine: Machine) -> str:
        """Wait for the guest's answer and return its boot_id, which was never given out before."""
        deadline = time.monotonic() + (machine.reset_within_s if machine.reset else tunnel.DIAL_S)
        while True:
            try:
                boot_id = str(asyncio.run(tunnel.health(machine.way))["boot_id"])
                why = f"its guest is still the one of before ({boot_id})"
            except (OSError, ValueError, KeyError) as error:
                boot_id, why = "", str(error)
            with self._locked():
                spent = self._spent()
                if boot_id and spent.get(machine.name) != boot_id:
                    spent.pop(machine.name, None)
                    part = self._state / "spent.part"
                    part.write_text(json.dumps({**spent, machine.name: boot_id}))
                    part.replace(self._state / "spent.json")
                    return boot_id
            if boot_id and not machine.reset:
                raise ProvisionFailed(
                    f"machine {machine.name} was lent out before and has no reset: "
                    "start its guest anew"
                )
            if time.monotonic() > deadline:
                raise ProvisionFailed(f"machine {machine.name} is not fresh: {why}")
            time.sleep(_ASK_EVERY_S)

    def _spent(self) -> dict[str, str]:
        """Return the last boot_id that was given out of each machine, the longest ago first."""
        try:
            spent: dict[str, str] = json.loads((self._state / "spent.json").read_text())
        except FileNotFoundError:
            return {}
        return spent

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._sandboxes.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._state / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _clear(self, folder: Path) -> None:
        record = records.load(folder)
        if record is not None:
            tunnel.close_way(record.handle.pid, record.handle.boot_id)
        records.remove(folder)


def _machine_of(folder: Path) -> str:
    try:
        return (folder / "machine").read_text()
    except FileNotFoundError:  # it is being removed
        return ""


def _reset(machine: Machine) -> None:
    """Run the machine's reset command; raises ProvisionFailed with the end of what it printed."""
    try:
        done = subprocess.run(
            machine.reset,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=machine.reset_within_s,
            check=False,
        )
    except OSError as error:
        raise ProvisionFailed(f"machine {machine.name}: can't run its reset: {error}") from error
    except subprocess.TimeoutExpired:
        raise ProvisionFailed(
            f"machine {machine.name}: its reset took longer than {machine.reset_within_s:g} s"
        ) from None
    if done.returncode:
        said = (done.stdout + done.stderr)[-500:].decode(errors="replace").strip()
        raise ProvisionFailed(
            f"machine {machine.name}: its reset ended with status {done.returncode}: {said}"
        )
