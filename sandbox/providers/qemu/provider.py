"""Virtual machines on this host: forked in a moment from one template that booted once.

Everything of a machine is in STATE/machines/NAME/: its disk's difference, the run folder with its
sockets, the record that lets another process adopt it, the logs. One bridge process below STATE
offers all their guest sockets. Both outlive the process that started them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from sandbox.desktop import GuestDesktop
from sandbox.dial import Gateway
from sandbox.images.qemu import PROGRAMS
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers import records
from sandbox.providers.folder import own_uid
from sandbox.providers.local import limits
from sandbox.providers.qemu import client, memory, process, snapshots, template, way
from sandbox.providers.qemu.qmp import Monitor, QmpError
from sandbox.providers.qemu.template import Template

_QEMU_MB = 256
"""What QEMU itself may use beside the machine's memory: translated code, the screen, snapshots."""

_QEMU_CPUS = 0.5
"""And beside its processors, which may be busy: devices, pictures, the start itself."""

_THREADS = 64
_START_ID = 16  # hex digits of boot_id that stay for the life of one QEMU
_MOVE_S = 60.0
_FIRST_UID, _UIDS = 61_000, 500


def _quiet(_: str) -> None:
    pass


class QemuProvider:
    """Starts, finds and stops machines below one folder; several processes may use it at once.

    `say` is told of what takes long: the template of a new kind of machine.
    """

    name = "qemu"

    def __init__(self, state: Path, *, say: Callable[[str], None] = _quiet) -> None:
        self._state = state.absolute()
        self._say = say

    def start(self, spec: SandboxSpec) -> Handle:
        """Fork a machine; well under a second once its template is there, else a minute or more.

        Raises ProvisionFailed with the stage and the log.
        """
        folder = self._folder(spec.name)
        self._check(spec, folder)
        made = template.ensure(
            memory_mb=spec.memory_mb,
            cpus=max(1, round(spec.cpus)),
            shared=spec.shared,
            say=self._say,
        )
        try:
            folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise ProvisionFailed(f"a sandbox {spec.name} exists already: stop it first") from None
        # A guest that breaks out is nobody.
        user = own_uid(_FIRST_UID, _UIDS) if os.geteuid() == 0 else nullcontext()
        try:
            with user as uid:
                return self._fork(spec, folder, made, uid)
        except BaseException as error:
            said = process.log(folder)
            self._clear(folder)
            if isinstance(error, DesktopLost | QmpError):
                raise ProvisionFailed(f"{spec.name}: {error}: {said}") from error
            raise

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost with what its log says."""
        folder = _folder_of(handle)
        if not self.alive(handle):
            raise DesktopLost(_why_lost(handle, folder))
        if folder is not None:
            client.revive(folder.parent.parent, handle.name)
        return GuestDesktop(handle)

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the desktop behind `handle` on another host; raises DesktopLost, StaleLease."""
        return GuestDesktop(handle, gateway=gateway)

    def alive(self, handle: Handle) -> bool:
        """Whether the very QEMU of `handle` still runs, at the very boot_id; not its guest."""
        if not records.runs(handle.pid, handle.boot_id[:_START_ID]):
            return False
        folder = _folder_of(handle)
        record = records.load(folder) if folder is not None else None
        return record is None or record.handle.boot_id == handle.boot_id

    def stop(self, handle: Handle) -> None:
        """End the machine and remove its folder and limits; of a restored one any handle will do."""
        folder = self._folder(handle.name)
        record = records.load(folder)
        mine = handle.boot_id[:_START_ID]
        if record is not None and mine and not record.handle.boot_id.startswith(mine):
            return  # that one is gone; the name has been given to another since
        self._clear(folder)

    def running(self) -> list[Handle]:
        """Return what has a folder here, also what died or never came up: stop() clears it."""
        found = records.found(self._state / "machines", self.name)
        for handle in found:
            if self.alive(handle):
                client.revive(self._state, handle.name)
        return found

    def log(self, handle: Handle) -> str:
        """Return the end of what QEMU and the machine's serial console said."""
        return process.log(self._folder(handle.name))

    # -- snapshots -----------------------------------------------------------------------------

    def snapshot(self, handle: Handle, name: str) -> None:
        """Keep memory, disk and devices as `name`; costs what the machine has changed so far."""
        _checked(name)
        folder = self._folder(handle.name)
        with self._monitor(handle) as monitor:
            if name in snapshots.names(folder):
                raise QmpError(f"{handle.name} has a snapshot {name!r} already")
            snapshots.save(monitor, folder, handle.pid, name)

    def restore(self, handle: Handle, name: str) -> Handle:
        """Go back to `name`; returns the handle of what is another machine from then on."""
        folder = self._folder(handle.name)
        if name not in self.snapshots(handle):
            raise QmpError(f"{handle.name} has no snapshot {name!r}")
        record = records.load(folder)
        assert record is not None  # it is alive
        boot_id = handle.boot_id[:_START_ID] + secrets.token_hex(8)
        # From here on nobody takes it for the machine it was, whatever happens in between, and
        # nobody gets into the one that it will be before it is told so.
        records.save(folder, replace(record, handle=replace(handle, boot_id=boot_id)))
        way.note_stale(folder)
        client.close(self._state, handle.name)
        process.kill(folder, boot_id[:_START_ID])
        snapshots.put_disk_back(folder, name)
        fresh = replace(handle, boot_id=boot_id)
        state = snapshots.state(folder, name)
        return self._launch(folder, fresh, record.groups, state, whole=True)

    def snapshots(self, handle: Handle) -> list[str]:
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} does not run any more")
        return snapshots.names(self._folder(handle.name))

    def forget(self, handle: Handle, name: str) -> None:
        """Delete a snapshot; fine if there is none."""
        with self._monitor(handle) as monitor:
            snapshots.forget(monitor, self._folder(handle.name), name)

    # -- parts ---------------------------------------------------------------------------------

    def _fork(self, spec: SandboxSpec, folder: Path, made: Template, uid: int | None) -> Handle:
        run = folder / "run"
        run.mkdir(mode=0o700)
        boot_id = uuid.uuid4().hex
        password = secrets.token_urlsafe(6)  # only 8 characters count
        (run / "rfb.secret").touch(mode=0o600)
        (run / "rfb.secret").write_text(password)
        shutil.copyfile(made.folder / "overlay.qcow2", folder / "disk.qcow2")
        (folder / "disk.qcow2").chmod(0o600)
        machine = made.machine(
            f"tandem-{boot_id[:_START_ID]}",
            run,
            folder / "disk.qcow2",
            password=run / "rfb.secret",
            user=uid,
        )
        memory_mb, cpus = spec.memory_mb + _QEMU_MB, spec.cpus + _QEMU_CPUS
        bounded = replace(spec, memory_mb=memory_mb, cpus=cpus, pids=_THREADS)
        limited = limits.create(bounded, group=f"{spec.name}-{boot_id[:12]}")
        handle = Handle(
            provider=self.name,
            name=spec.name,
            boot_id=boot_id,
            guest_socket=str(run / "guest.sock"),
            rfb_socket=str(run / "rfb.sock"),
            rfb_password=password,
        )
        groups = tuple(str(group) for group in limited.groups)
        # Before there is a process: whoever finds the folder of an interrupted start can clear it.
        records.save(folder, records.Record(handle, groups))
        said = f"{limited.kind}; {made.accel.limits}"
        command = machine.command()
        about = process.About(spec.width, spec.height, said, made.memory_mb, command)
        process.write(folder, about)
        return self._launch(folder, handle, groups, made.folder / "devices", whole=False)

    def _launch(
        self, folder: Path, handle: Handle, groups: tuple[str, ...], state: Path, *, whole: bool
    ) -> Handle:
        """Start QEMU from `state`, then make its guest the one of `handle`; returns it with its pid."""
        about = process.read(folder)
        handle = replace(handle, pid=process.launch(about.command, folder, groups))
        records.save(folder, records.Record(handle, groups))
        with Monitor(folder / "run" / "qmp.sock", timeout_s=_MOVE_S) as monitor:
            _load(monitor, state, whole=whole)
            memory.note(folder, snapshots.locate(monitor, memory_mb=about.memory_mb))
            monitor.run("cont")
        wanted = way.identity(
            boot_id=handle.boot_id, width=about.width, height=about.height, limits=about.limits
        )
        client.open(self._state, handle.name, wanted)
        return handle

    def _check(self, spec: SandboxSpec, folder: Path) -> None:
        for program, package in PROGRAMS.items():
            if program.startswith("qemu") and shutil.which(program) is None:
                raise ProvisionFailed(f"{program} is missing: apt-get install {package}")
        if spec.image != "desktop":
            raise ProvisionFailed(f"no machine image {spec.image!r}, only 'desktop': docs/qemu.md")
        records.check(spec, provider=self.name, socket=folder / "run" / "screen.sock")

    def _folder(self, name: str) -> Path:
        return self._state / "machines" / name

    def _monitor(self, handle: Handle) -> Monitor:
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} does not run any more")
        return Monitor(self._folder(handle.name) / "run" / "qmp.sock", timeout_s=_MOVE_S)

    def _clear(self, folder: Path) -> None:
        """Kill what runs, wait for it to be gone, then remove what it left."""
        record = records.load(folder)
        if record is not None:
            process.kill(folder, record.handle.boot_id[:_START_ID])
            client.close(self._state, folder.name)
            limits.remove(tuple(Path(group) for group in record.groups))
        records.remove(folder)


def _load(monitor: Monitor, state: Path, *, whole: bool) -> None:
    """Give a waiting QEMU its state; a template's lacks the memory, which forks map (not `whole`)."""
    capabilities = [{"capability": "x-ignore-shared", "state": not whole}]
    monitor.run("migrate-set-capabilities", capabilities=capabilities)
    with state.open("rb") as stream:
        monitor.give("state", stream.fileno())
        monitor.run("migrate-incoming", uri="fd:state")
        monitor.wait_for("query-status", {"paused", "running"}, broken={"internal-error"})


def _checked(name: str) -> None:
    if not name or len(name) > 64 or not name.replace("-", "").replace("_", "").isalnum():
        raise QmpError(f"{name!r} can't be the name of a snapshot: letters, digits, - and _")


def _why_lost(handle: Handle, folder: Path | None) -> str:
    record = records.load(folder) if folder is not None else None
    if folder is None or record is None:
        return f"{handle.name} does not run any more"
    if record.handle.boot_id != handle.boot_id:
        return f"{handle.name} was started or restored since: its boot_id changed"
    return f"{handle.name} ended: {process.cause(folder, record.groups)}"


def _folder_of(handle: Handle) -> Path | None:
    """Return the machine's folder; None where this is another computer than the machine's host."""
    folder = Path(handle.guest_socket).parent.parent
    return folder if handle.guest_socket and (folder / "record.json").exists() else None
