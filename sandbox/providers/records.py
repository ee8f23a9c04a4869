"""What a provider of this host keeps of a sandbox on disk, so that another process finds it again."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.provider import Handle, ProvisionFailed, SandboxSpec

_MAX_SOCKET_PATH = 107  # sun_path of Linux, with its closing zero


@dataclass(frozen=True, slots=True)
class Record:
    """A sandbox that runs or was being started; `handle.pid` is 0 until it has a first process.

    `groups` are its control groups, to be removed with it.
    """

    handle: Handle
    groups: tuple[str, ...]


def save(folder: Path, record: Record) -> None:
    """Write the record whole or not at all; it holds the screen's password, so 0600."""
    part = folder / "record.part"
    part.touch(mode=0o600)
    part.write_text(json.dumps(asdict(record)))
    part.replace(folder / "record.json")


def load(folder: Path) -> Record | None:
    """Return the record of a sandbox; None if there is no such sandbox."""
    try:
        record = json.loads((folder / "record.json").read_text())
    except FileNotFoundError:
        return None
    return Record(
        handle=Handle(**record["handle"]),
        groups=tuple(record["groups"]),
    )


def given_on(folder: Path, handle: Handle) -> bool:
    """Whether the name of `handle` belongs to another start by now: that one is gone."""
    record = load(folder)
    return record is not None and handle.boot_id not in ("", record.handle.boot_id)


def remove(folder: Path, *, seconds: float = 5.0) -> None:
    """Remove what a sandbox left; fine if it is gone already, or another caller removes it too.

    Its first process is dead by now, but a child of that one may still write for a moment.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return shutil.rmtree(folder)
        except OSError as error:
            if not folder.exists():
                return
            moving = error.errno in (errno.ENOTEMPTY, errno.ENOENT)
            if not moving or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def runs(pid: int, boot_id: str) -> bool:
    """Whether process `pid` belongs to the start `boot_id`: it is on bwrap's command line.

    A pid alone may be somebody else's by now.
    """
    if pid <= 0 or not boot_id:
        return False
    process = Path("/proc", str(pid))
    try:
        while not (command := (process / "cmdline").read_bytes()):
            # Empty is a dead process, or for a moment one that is becoming another program.
            if (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return False
            time.sleep(0.001)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return boot_id.encode() in command


def uids_in_use() -> set[int]:
    """Return the users that some process of this host runs as."""
    uids = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                uids.add(entry.stat().st_uid)
            except FileNotFoundError:  # it ended in between
                continue
    return uids


def found(state: Path, provider: str) -> list[Handle]:
    """Return what has a folder in `state`, also what died or never came up."""
    if not state.is_dir():
        return []
    handles = []
    for folder in sorted(state.iterdir()):
        record = load(folder)
        nameless = Handle(provider=provider, name=folder.name, boot_id="")
        handles.append(record.handle if record is not None else nameless)
    return handles


def check(
    spec: SandboxSpec, *, provider: str, socket: Path, networks: tuple[str, ...] = ("none",)
) -> None:
    """Raise ProvisionFailed where such a sandbox can't be kept here: its network, name or socket."""
    if spec.network not in networks:
        raise ProvisionFailed(
            f"provider {provider} has no network {spec.network!r}, only {', '.join(networks)}"
        )
    if not spec.name or "/" in spec.name or spec.name.startswith("."):
        raise ProvisionFailed(f"{spec.name!r} can't be the name of a sandbox")
    if len(os.fsencode(socket)) > _MAX_SOCKET_PATH:
        raise ProvisionFailed(
            f"{socket} is too long for a unix socket ({_MAX_SOCKET_PATH} bytes): "
            "set TANDEM_STATE to a shorter folder"
        )
