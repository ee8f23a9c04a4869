"""Simulated phones behind a real adb server of their own. No Android runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.providers.android.adb import Adb
from tests.sandbox import android_device

needs_adb = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("adb", "bwrap")), reason="needs adb and bubblewrap"
)


def wait_for(path: Path, *, seconds: float = 15.0) -> str:
    """Return the text of `path` once it is there."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)
    return path.read_text() if path.is_file() else ""


@contextmanager
def phones(root: Path, *, count: int) -> Iterator[list[Adb]]:
    """Run `count` simulated phones listed in ROOT/phones/devices.toml; STATE is a folder of ROOT."""
    address = f"localfilesystem:{root}/adb.sock"
    environment = {**os.environ, "HOME": str(root)}
    server = subprocess.Popen(
        ["adb", "-L", address, "nodaemon", "server"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    devices = [android_device.start(root / f"device-{n}") for n in range(count)]
    try:
        wait_for(root / "adb.sock")
        serials = [f"127.0.0.1:{wait_for(root / f'device-{n}' / 'port')}" for n in range(count)]
        (root / "phones").mkdir()
        listed = "".join(f"[[device]]\nserial = {json.dumps(serial)}\n" for serial in serials)
        (root / "phones" / "devices.toml").write_text(f"server = {json.dumps(address)}\n{listed}")
        found = [Adb(serial, server=address) for serial in serials]
        for adb in found:
            adb.host("connect", adb.serial)
        yield found
    finally:
        for process in (*devices, server):
            process.send_signal(signal.SIGKILL)
            process.wait()
