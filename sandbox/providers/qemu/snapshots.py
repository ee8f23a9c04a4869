"""Snapshots of a machine: its disk inside qcow2, its devices by QEMU, of its memory what it changed.

Kept in NAME/snapshots/SNAPSHOT as a stream that another QEMU starts from, over the same template.
QEMU's own snapshot-save and -load go over the whole memory: seconds, and all of it is the fork's own
afterwards. The command that saves devices alone carries Xen's name, but is there on every machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.provider import DesktopLost, SandboxError
from sandbox.providers.qemu import memory, stream
from sandbox.providers.qemu.command import DISK, VGA_SLOT, VRAM_MB
from sandbox.providers.qemu.memory import Region
from sandbox.providers.qemu.qmp import Monitor, QmpError

_FDSET = 2
_ADDRESS = re.compile(r"\((\S+)\) is (0x[0-9a-f]+)")


def locate(monitor: Monitor, *, memory_mb: int) -> list[Region]:
    """Return where QEMU holds the memory; ask before the guest runs, who could move the card's."""
    card = next(
        device
        for bus in monitor.run("query-pci")
        for device in bus["devices"]
        if device["slot"] == VGA_SLOT
    )
    vram = next(r["address"] for r in card["regions"] if r["bar"] == 0)
    return [
        _region(monitor, "ram", 0, memory_mb),
        _region(monitor, f"0000:00:{VGA_SLOT:02x}.0/vga.vram", vram, VRAM_MB),
    ]


def names(folder: Path) -> list[str]:
    """Return the whole ones, the oldest first."""
    places = [place for place in (folder / "snapshots").glob("*") if not place.suffix]
    return [p.name for p in sorted(places, key=lambda place: place.stat().st_mtime_ns)]


def state(folder: Path, name: str) -> Path:
    """Return what a QEMU is started from to be the machine that it was."""
    return folder / "snapshots" / name


def save(monitor: Monitor, folder: Path, pid: int, name: str) -> None:
    """Keep the machine as `name`; it stands still meanwhile, and runs on whatever happens."""
    part, regions = state(folder, f"{name}.part"), memory.noted(folder)
    part.parent.mkdir(exist_ok=True, mode=0o700)
    if name in _on_disk(monitor):  # of a snapshot that was interrupted, or forgotten halfway
        _delete(monitor, name)
    monitor.run("stop")
    try:
        devices = _devices(monitor)
        monitor.run("blockdev-snapshot-internal-sync", device=DISK, name=name)
        with part.open("wb") as out, memory.changed(pid) as changes:
            stream.begin(out, regions)
            for region in regions:
                stream.pages(out, region, changes.of(region))
            stream.end(out, devices)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise SandboxError(f"the snapshot {name!r} can't be kept: {error}") from error
        raise
    finally:
        monitor.run("cont")
    part.rename(state(folder, name))


def put_disk_back(folder: Path, name: str) -> None:
    """Make the disk of a machine that has ended what it was; raises QmpError."""
    back = ["qemu-img", "snapshot", "-q", "-a", name, str(folder / "disk.qcow2")]
    done = subprocess.run(back, capture_output=True, text=True, check=False)
    if done.returncode:
        raise QmpError(f"the disk can't go back to {name!r}: {done.stderr.strip()[-300:]}")


def forget(monitor: Monitor, folder: Path, name: str) -> None:
    """Delete `name`; fine if there is none."""
    state(folder, name).unlink(missing_ok=True)
    if name in _on_disk(monitor):
        _delete(monitor, name)


def _delete(monitor: Monitor, name: str) -> None:
    monitor.run("blockdev-snapshot-delete-internal-sync", device=DISK, name=name)


def _on_disk(monitor: Monitor) -> list[str]:
    for block in monitor.run("query-block"):
        medium = block.get("inserted", {})
        if medium.get("node-name") == DISK:
            return [snapshot["name"] for snapshot in medium["image"].get("snapshots", [])]
    return []


def _region(monitor: Monitor, name: str, guest: int, mib: int) -> Region:
    """Return the region that a guest's physical address begins; raises DesktopLost."""
    said = str(monitor.run("human-monitor-command", **{"command-line": f"gpa2hva {guest:#x}"}))
    found = _ADDRESS.search(said)
    if found is None or found[1] != name.rpartition("/")[2]:
        raise DesktopLost(f"QEMU does not say where {name} lies: {said.strip()[:200]}")
    return Region(name, int(found[2], 16), mib << 20)


def _devices(monitor: Monitor) -> bytes:
    """Return the state of all devices of a machine that stands still."""
    kept = os.memfd_create("devices", os.MFD_CLOEXEC)
    try:
        with _handed(monitor, os.open(f"/proc/self/fd/{kept}", os.O_WRONLY | os.O_CLOEXEC)) as path:
            # Not live: that would also let go of the disk.
            monitor.run("xen-save-devices-state", filename=path, live=False)
        return os.pread(kept, os.fstat(kept).st_size, 0)
    finally:
        os.close(kept)


@contextmanager
def _handed(monitor: Monitor, fd: int) -> Iterator[str]:
    """Hand a file to QEMU, which may open none by now; yield the name it knows it by. Closes it."""
    try:
        monitor.give_set(_FDSET, fd)
        yield f"/dev/fdset/{_FDSET}"
        monitor.run("remove-fd", **{"fdset-id": _FDSET})
    finally:
        os.close(fd)
