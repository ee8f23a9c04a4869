"""Computers that are reached over TCP only: local desktops, each behind the door of its guest.

`python -m tests.sandbox.far ROOT NAME WIDTHxHEIGHT` starts the desktop of one afresh: it is the
reset command of the machines registered here.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sandbox.provider import SandboxSpec
from sandbox.providers.kubernetes import identity
from sandbox.providers.kubernetes.identity import Identity
from sandbox.providers.local import LocalProvider

SIZES = {"large": (1024, 640), "small": (1280, 720)}


def restart(root: Path, name: str, size: tuple[int, int], password: bytes) -> str:
    """Start the desktop `name` afresh, whose screen has the scrambled `password`; return its boot_id."""
    provider = LocalProvider(root / "far")
    for handle in provider.running():
        if handle.name == name:
            provider.stop(handle)
    handle = provider.start(SandboxSpec(name, width=size[0], height=size[1]))
    (root / "far" / name / "run" / "rfb.passwd").write_bytes(password)
    return handle.boot_id


def stop(root: Path, name: str) -> None:
    """End the desktop `name`; fine if there is none."""
    provider = LocalProvider(root / "far")
    for handle in provider.running():
        if handle.name == name:
            provider.stop(handle)


@contextmanager
def door(root: Path, name: str, address: str, keys: Identity) -> Iterator[None]:
    """Open the guest's own door in front of the desktop `name`, at `address` (HOST:PORT)."""
    files = root / "keys" / name
    files.mkdir(parents=True)
    for file, data in keys.files().items():
        (files / file).write_bytes(data)
    run = root / "far" / name / "run"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "guest.door", "--listen", address),
            *("--certificate", str(files / "door.pem"), "--secret", str(files / "secret")),
            *("--guest", str(run / "guest.sock"), "--rfb", str(run / "rfb.sock")),
        ]
    )
    try:
        _wait_until_open(address)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def machines(root: Path) -> Iterator[None]:
    """Register the machines of SIZES for the remote provider of `root`/remote."""
    state = root / "remote"
    state.mkdir()
    tables = []
    with ExitStack() as stack:
        for name, size in SIZES.items():
            keys, address = identity.make(name), f"127.0.0.1:{free_port()}"
            stack.callback(stop, root, name)
            stack.enter_context(door(root, name, address, keys))
            (state / f"{name}.pem").write_text(keys.certificate)
            reset = [sys.executable, "-m", "tests.sandbox.far", str(root), name]
            tables.append(
                f"[{name}]\n"
                f'guest = "door://{address}"\nvnc = "door://{address}"\nsecret = "{keys.secret}"\n'
                f'certificate = "{name}.pem"\nvnc_password = "{keys.password}"\n'
                f"size = {list(size)}\nreset = {json.dumps(reset)}\nreset_within_s = 60\n"
            )
        file = state / "machines.toml"
        file.touch(mode=0o600)
        file.write_text("\n".join(tables))
        yield


def free_port() -> int:
    """Return a TCP port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_until_open(address: str) -> None:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            assert time.monotonic() < deadline, f"no door at {address}"
            time.sleep(0.02)


if __name__ == "__main__":
    where, machine = Path(sys.argv[1]), sys.argv[2]
    scrambled = (where / "keys" / machine / "rfb.passwd").read_bytes()
    restart(where, machine, SIZES[machine], scrambled)
