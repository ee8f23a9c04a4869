"""The machines that were registered by hand: a TOML file, one table for each.

    [lab-1]
    guest = "door://10.0.0.5:7443"          # or "tcp://127.0.0.1:PORT", the end of an ssh tunnel
    vnc = "door://10.0.0.5:7443"
    secret = "..."                          # of the door
    certificate = "lab-1.pem"               # of the door; beside this file
    vnc_password = "..."
    size = [1280, 720]
    reset = ["virsh", "snapshot-revert", "lab-1", "clean", "--running"]     # or "none"
    reset_within_s = 120

The file holds secrets: it is refused if anybody else can read it.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.provider import ProvisionFailed
from sandbox.providers.tunnel import Way

FILE = "machines.toml"
_KEYS = {
    *("guest", "vnc", "secret", "certificate", "vnc_password", "size", "reset", "reset_within_s"),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A registered machine: `size` in pixels; an empty `reset` means that there is none."""

    name: str
    way: Way
    vnc_password: str
    size: tuple[int, int]
    reset: tuple[str, ...]
    reset_within_s: float


def load(path: Path) -> list[Machine]:
    """Return the machines in the file's order; raises ProvisionFailed naming the entry and key."""
    try:
        status = path.stat()
        tables = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ProvisionFailed(f"no machines are registered: write {path}") from None
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ProvisionFailed(f"{path}: {error}") from error
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise ProvisionFailed(f"{path} holds secrets: chown it to this user and chmod 600 it")
    machines = []
    for name, table in tables.items():
        try:
            machines.append(_machine(name, table, path.parent))
        except (KeyError, TypeError, ValueError, OSError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ProvisionFailed(f"{path}: machine {name!r}: {what}") from error
    return machines


def _machine(name: str, table: dict[str, Any], beside: Path) -> Machine:
    if unknown := set(table) - _KEYS:
        raise ValueError(
            f"unknown key {sorted(unknown)[0]!r}; there are {', '.join(sorted(_KEYS))}"
        )
    guest, vnc = _address(table["guest"]), _address(table["vnc"])
    doors = [address for address in (guest, vnc) if address.startswith("door://")]
    certificate = (beside / table["certificate"]).read_text() if doors else ""
    secret = table["secret"] if doors else ""
    if doors and (len(secret) < 32 or len(secret.split()) != 1 or not secret.isascii()):
        raise ValueError("secret must be one word of at least 32 characters: openssl rand -hex 32")
    width, height = (int(pixels) for pixels in table.get("size", (1280, 720)))
    reset = table["reset"]
    if reset != "none" and not (
        isinstance(reset, list) and reset and all(isinstance(word, str) for word in reset)
    ):
        raise ValueError('reset must be "none" or a list: a program and its arguments')
    return Machine(
        name=name,
        way=Way(guest=guest, rfb=vnc, certificate=certificate, secret=secret),
        vnc_password=str(table["vnc_password"]),
        size=(width, height),
        reset=() if reset == "none" else tuple(reset),
        reset_within_s=float(table.get("reset_within_s", 120)),
    )


def _address(text: str) -> str:
    """Return an address as it is; raises ValueError if it is none, or plain and not of this machine."""
    scheme, _, place = text.partition("://")
    host, _, port = place.rpartition(":")
    if scheme not in ("door", "tcp") or not host or not port.isdigit():
        raise ValueError(f"{text!r} is no door://HOST:PORT or tcp://HOST:PORT")
    if scheme == "tcp" and not _loopback(host):
        raise ValueError(
            f"{text!r} would leave this machine in the clear: open a door there, "
            "or an ssh tunnel that ends on 127.0.0.1"
        )
    return text


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
