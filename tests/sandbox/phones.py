"""Simulated phones behind a real adb server of their own. No Android runs."""

from __future__ import annotations

import json
import os
import shutil
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


def wait_for(path: Path, *, seconds: float = 60.0) -> str:
    """Return the text of `path` once it is there."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)
    return path.read_text()


@contextmanager
def phones(root: Path, *, count: int) -> Iterator[list[Adb]]:
    """Run `count` simulated phones listed in ROOT/phones/devices.toml; STATE is a folder of ROOT."""
    address = f"localfilesystem:{root}/adb.sock"
    # A server of its own, on a unix socket; HOME is where it keeps its key.
    words = ["adb", "-L", address]
    environment = {**os.environ, "HOME": str(root)}
    subprocess.run([*words, "start-server"], env=environment, capture_output=True, check=True)
    devices = [android_device.start(root / f"device-{n}") for n in range(count)]
    try:
        serials = [f"127.0.0.1:{wait_for(root / f'device-{n}' / 'port')}" for n in range(count)]
        (root / "phones").mkdir()
        listed = "".join(f"[[device]]\nserial = {json.dumps(serial)}\n" for serial in serials)
        (root / "phones" / "devices.toml").write_text(f"server = {json.dumps(address)}\n{listed}")
        found = [Adb(serial, server=address) for serial in serials]
        for adb in found:
            adb.host("connect", adb.serial)
        yield found
    finally:
        subprocess.run([*words, "kill-server"], capture_output=True)
        for process in devices:
            process.kill()
            process.wait()
