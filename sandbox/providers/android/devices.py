"""Which phones this host may use, and holding one of them against other processes of the host."""

from __future__ import annotations

import fcntl
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sandbox.provider import ProvisionFailed

_KEYS = {"serial", "snapshot"}
_SERIAL = re.compile(r"[\w.:\[\]-]{1,100}")


@dataclass(frozen=True, slots=True)
class Device:
    """A phone by adb's name for it; `snapshot` is the emulator's to load at each start, or ""."""

    serial: str
    snapshot: str = ""


@dataclass(frozen=True, slots=True)
class Devices:
    """The list of a host; `server` is adb's -L address, "" for the usual server."""

    devices: tuple[Device, ...]
    server: str = ""


def load(file: Path) -> Devices:
    """Return what `file` (TOML) lists; raises ProvisionFailed saying what to write there.

    Nothing is ever taken that is not listed: a phone on the cable may be somebody's own.
    """
    try:
        read = tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise ProvisionFailed(
            f"no phone is listed: write {file} with one [[device]] each: "
            'serial = "emulator-5554" (as adb devices names it, or HOST:PORT)'
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ProvisionFailed(f"{file} is no TOML: {error}") from error
    listed = read.get("device", [])
    server = read.get("server", "")
    if not isinstance(listed, list) or not listed or not isinstance(server, str):
        raise ProvisionFailed(f"{file} lists no [[device]]")
    devices = tuple(_device(file, entry) for entry in listed)
    if len({device.serial for device in devices}) < len(devices):
        raise ProvisionFailed(f"{file} lists a device twice")
    return Devices(devices, server)


def _device(file: Path, entry: object) -> Device:
    if not isinstance(entry, dict) or not set(entry) <= _KEYS:
        raise ProvisionFailed(f"{file}: a device has only the keys {', '.join(sorted(_KEYS))}")
    serial, snapshot = entry.get("serial"), entry.get("snapshot", "")
    if not isinstance(serial, str) or not _SERIAL.fullmatch(serial) or serial.startswith("-"):
        raise ProvisionFailed(f"{file}: {serial!r} is no serial")
    if not isinstance(snapshot, str):
        raise ProvisionFailed(f"{file}: the snapshot of {serial} must be a name")
    return Device(serial, snapshot)


def hold(folder: Path, device: Device) -> int | None:
    """Take the device for this process; None if another has it. The kernel gives it back at the end.

    The descriptor that is returned is the hold: it lives as long as the process, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / f"{quote(device.serial, safe='')}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
