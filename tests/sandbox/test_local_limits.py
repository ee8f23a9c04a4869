"""Bombs: a sandbox that eats all it can harms itself alone, and the cause has a name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.provider import Desktop, DesktopLost, Handle, SandboxSpec
from sandbox.providers.local import LocalProvider
from tests.sandbox.desktops import needs_local, new_id

pytestmark = needs_local
Run = Callable[[str], str]
FORKS = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(1)"
FILES = """
opened = []
try:
    while True: opened.append(open('/dev/null'))
except OSError as error: print(len(opened) > 4000, error.strerror)
"""


@pytest.fixture
def provider(tmp_path: Path) -> LocalProvider:
    return LocalProvider(tmp_path / "sb")


@pytest.fixture
def handle(provider: LocalProvider) -> Iterator[Handle]:
    handle = provider.start(SandboxSpec("bombed", memory_mb=400, pids=150))
    yield handle
    provider.stop(handle)


@pytest.fixture
def desktop(provider: LocalProvider, handle: Handle) -> Iterator[Desktop]:
    desktop = provider.connect(handle)
    desktop.fence(1)
    yield desktop
    desktop.close()


@pytest.fixture
def run(desktop: Desktop) -> Run:
    return lambda command: (
        desktop.shell(command, epoch=1, action_id=new_id(), timeout_ms=20_000).output
    )


def _needs_groups(desktop: Desktop) -> None:
    if not str(desktop.health()["limits"]).startswith("cgroup"):
        pytest.skip("no cgroup can be written here: only processes are limited")


def test_memory_and_processes(
    provider: LocalProvider, handle: Handle, desktop: Desktop, run: Run
) -> None:
    _needs_groups(desktop)
    assert provider.causes(handle) == []
    assert "status 137" in run("python3 -c 'x = bytearray(600 << 20)' 2>&1; echo status $?")
    assert any("ended for memory" in cause for cause in provider.causes(handle))
    desktop.launch(["python3", "-c", FORKS], epoch=1, action_id=new_id())
    group = next(
        Path("/sys/fs/cgroup").glob(f"**/tandem/bombed-{handle.boot_id[:12]}/pids.current")
    )
    deadline = time.monotonic() + 60
    while not any("were refused" in cause for cause in provider.causes(handle)):
        assert time.monotonic() < deadline, provider.causes(handle)
        time.sleep(0.02)
    assert int(group.read_text()) <= 150
    assert desktop.health()["ready"] is True  # the guest itself still answers
    provider.stop(handle)
    assert not group.exists()


def test_disks_and_descriptors(provider: LocalProvider, handle: Handle, run: Run) -> None:
    folder = Path(handle.guest_socket).parent.parent
    for place in ("/dev/shm", "/run/user/1000"):
        out = run(f"head -c 300M /dev/zero > {place}/x; stat -c %s {place}/x; rm {place}/x")
        assert "No space left" in out
    for place in ("/", "/etc", "/dev", "/opt", "/home", "/var"):
        assert "Read-only" in run(f"touch {place}/x 2>&1"), place
    assert "File too large" in run("truncate -s 600M big 2>&1") or "limit" in run("echo limit")
    assert "True Too many open files" in run(f'python3 -c "{FILES}"')
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 1 << 20


def test_a_desktop_that_died_of_memory_says_so(
    provider: LocalProvider, handle: Handle, desktop: Desktop, run: Run
) -> None:
    _needs_groups(desktop)
    # Files in memory are not freed by ending a process: in the end the desktop itself is ended.
    with pytest.raises(DesktopLost):
        run(
            "head -c 250M /dev/zero > /dev/shm/x; head -c 250M /dev/zero > ~/y; head -c 99M /dev/zero > ~/z"
        )
        for _ in range(50):
            run("python3 -c 'x = bytearray(300 << 20)'")
    if not provider.alive(handle):
        with pytest.raises(DesktopLost, match="ended for memory"):
            provider.connect(handle)
