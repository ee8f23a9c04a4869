"""What machines promise beyond the contract: forks apart, undo, identity, adoption, nothing left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.capabilities import Snapshots
from sandbox.provider import DesktopLost, Handle, ProvisionFailed, SandboxError, SandboxSpec
from sandbox.providers.qemu.provider import QemuProvider
from sandbox.providers.qemu.qmp import Monitor
from tests.sandbox.desktops import needs_qemu, new_id
from tests.waiting import until

# The first machine of a new guest is booted, not forked; without KVM that takes a minute or more.
pytestmark = [needs_qemu, pytest.mark.qemu, pytest.mark.timeout(900)]
WHO = "cat /etc/machine-id /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | base64"
Start = Callable[[str], Handle]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> QemuProvider:
    return QemuProvider(tmp_path_factory.mktemp("vm"))


@pytest.fixture
def start(provider: QemuProvider) -> Iterator[Start]:
    """Start machines that are stopped afterwards."""
    started: list[Handle] = []

    def one(name: str) -> Handle:
        started.append(provider.start(SandboxSpec(name)))
        return started[-1]

    yield one
    for handle in started:
        provider.stop(handle)


def run(provider: QemuProvider, handle: Handle, command: str) -> str:
    desktop = provider.connect(handle)
    try:
        epoch = int(str(desktop.health()["epoch"])) + 1
        desktop.fence(epoch)
        return desktop.shell(command, epoch=epoch, action_id=new_id()).output
    finally:
        desktop.close()


def folder(handle: Handle) -> Path:
    return Path(handle.guest_socket).parent.parent


def test_forks_are_apart_and_are_nobody_elses_twin(provider: QemuProvider, start: Start) -> None:
    one, other = start("one"), start("other")
    run(provider, one, "echo mine > mine.txt; sync")
    assert run(provider, one, "cat mine.txt") == "mine\n"
    assert "No such file" in run(provider, other, "cat mine.txt")
    first, second = run(provider, one, WHO).split(), run(provider, other, WHO).split()
    assert len(first) == 3
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert abs(float(run(provider, other, "date +%s")) - time.time()) < 10
    assert run(provider, one, "id -un; hostname; ls /sys/class/net").split() == [
        *("user", "desk", "lo")
    ]


def test_a_restored_machine_has_undone_what_was_done(provider: QemuProvider, start: Start) -> None:
    assert isinstance(provider, Snapshots)
    handle = start("undo")
    desktop = provider.connect(handle)
    desktop.fence(3)
    action_id = new_id()
    desktop.shell("echo before > a.txt", epoch=3, action_id=new_id())
    before = run(provider, handle, WHO).split()  # raises the epoch
    provider.snapshot(handle, "step-1")
    desktop.fence(9)
    desktop.shell("rm a.txt; echo x >> done.txt", epoch=9, action_id=action_id)
    assert provider.snapshots(handle) == ["step-1"]

    restored = provider.restore(handle, "step-1")

    assert restored.boot_id != handle.boot_id
    assert not provider.alive(handle)
    with pytest.raises(DesktopLost, match="restored since"):
        provider.connect(handle)
    again = provider.connect(restored)
    assert again.health()["epoch"] == 0
    assert run(provider, restored, "cat a.txt; ls done.txt 2>&1").startswith("before\nls: cannot")
    again.fence(20)
    redone = again.shell("echo x >> done.txt; cat done.txt", epoch=20, action_id=action_id)
    assert (redone.output, redone.replayed) == ("x\n", False)
    after = run(provider, restored, WHO).split()
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert abs(float(run(provider, restored, "date +%s")) - time.time()) < 10
    provider.forget(restored, "step-1")
    provider.forget(restored, "step-1")
    assert provider.snapshots(restored) == []
    with pytest.raises(SandboxError, match="no snapshot"):
        provider.restore(restored, "step-1")
    with pytest.raises(SandboxError, match="can't be the name"):
        provider.snapshot(restored, "../x")
    provider.stop(handle)  # the row may still hold the handle from before
    assert provider.running() == []


def test_a_machine_outlives_who_started_it_and_its_bridge(provider: QemuProvider) -> None:
    state = provider._state
    try:
        _orphaned(provider, state)
    finally:
        for handle in provider.running():
            provider.stop(handle)


def _orphaned(provider: QemuProvider, state: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sandbox.provider import SandboxSpec\n"
        "from sandbox.providers.qemu.provider import QemuProvider\n"
        "QemuProvider(Path(sys.argv[1])).start(SandboxSpec('orphan'))"
    )
    subprocess.run([sys.executable, "-c", code, str(state)], check=True, timeout=600)
    (handle,) = provider.running()
    run(provider, handle, "echo here > here.txt")
    (bridge,) = _processes("sandbox.providers.qemu.bridge", str(state))
    os.kill(bridge, signal.SIGKILL)
    until(lambda: _ended(bridge))
    assert provider.running() == [handle]  # and the way in is open again
    assert run(provider, handle, "cat here.txt") == "here\n"
    assert provider.connect(handle).health()["epoch"] == 2
    provider.stop(handle)
    assert not folder(handle).exists()
    assert _processes(handle.boot_id[:16]) == []


def test_a_machine_that_ended_says_why(provider: QemuProvider, start: Start) -> None:
    panicked, killed = start("panic"), start("killed")
    with Monitor(folder(panicked) / "run" / "qmp.sock") as monitor:
        monitor.run("inject-nmi")  # told to be fatal on the kernel's command line
    until(lambda: not provider.alive(panicked))
    with pytest.raises(DesktopLost, match="panic"):
        provider.connect(panicked)
    os.kill(killed.pid, signal.SIGKILL)
    until(lambda: not provider.alive(killed))
    with pytest.raises(DesktopLost, match="killed from outside"):
        provider.connect(killed)
    assert panicked in provider.running() and killed in provider.running()


def test_the_screen_is_behind_a_password(provider: QemuProvider, start: Start) -> None:
    handle = start("screen")
    with socket.socket(socket.AF_UNIX) as screen:
        screen.settimeout(20)
        screen.connect(handle.rfb_socket)
        assert screen.recv(12).startswith(b"RFB 003.")
        screen.sendall(b"RFB 003.008\n")
        assert screen.recv(1) == b"\x01"
        assert screen.recv(1) == b"\x02"  # VncAuth and nothing else
    assert folder(handle).stat().st_mode & 0o077 == 0
    assert handle.rfb_password not in " ".join(_commands(handle.pid))
    assert "no KVM" in str(provider.connect(handle).health()["limits"]) or _kvm(handle.pid)


def test_what_cannot_be_started_is_refused_by_name(provider: QemuProvider) -> None:
    with pytest.raises(ProvisionFailed, match="allowlist"):
        provider.start(replace(SandboxSpec("net"), network="allowlist"))
    with pytest.raises(ProvisionFailed, match="name"):
        provider.start(SandboxSpec("../x"))
    assert provider.running() == []


def _processes(*words: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and all(w in " ".join(_commands(int(entry.name))) for w in words):
            found.append(int(entry.name))
    return found


def _ended(pid: int) -> bool:
    """Whether a process is over and its sockets closed; one without a command line may still end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _commands(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _kvm(pid: int) -> bool:
    return "kvm" in _commands(pid)
