"""What the local provider promises beyond the contract: isolation, limits, and leaving nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.provider import Desktop, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers.local import LocalProvider, limits
from tests.sandbox.desktops import needs_local, new_id
from tests.waiting import until

pytestmark = needs_local
Run = Callable[[str], str]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> LocalProvider:
    return LocalProvider(tmp_path_factory.mktemp("sb"))


@pytest.fixture(scope="module")
def handle(provider: LocalProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    shared = tmp_path_factory.mktemp("shared")
    shared.chmod(0o755)
    (shared / "page.html").write_text("<title>shared</title>")
    spec = SandboxSpec("local", memory_mb=400, pids=200, shared={"/opt/pages": shared})
    handle = provider.start(spec)
    yield handle
    provider.stop(handle)


@pytest.fixture(scope="module")
def desktop(provider: LocalProvider, handle: Handle) -> Iterator[Desktop]:
    desktop = provider.connect(handle)
    desktop.fence(1)
    yield desktop
    desktop.close()


@pytest.fixture(scope="module")
def run(desktop: Desktop) -> Run:
    return lambda command: desktop.shell(command, epoch=1, action_id=new_id()).output


def _processes_of(handle: Handle) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if handle.boot_id.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def test_the_user_inside_is_nobody_special(run: Run, handle: Handle) -> None:
    assert run("id -u; whoami").split() == ["1000", "user"]
    assert "superuser" in run("mount -t tmpfs x /tmp 2>&1")
    assert "CapEff:\t0000000000000000" in run("cat /proc/self/status")
    if os.geteuid() == 0:
        assert os.stat(f"/proc/{handle.pid}").st_uid != 0


def test_only_its_own_processes_are_seen(run: Run) -> None:
    assert int(run("ls -d /proc/[0-9]* 2>/dev/null | wc -l")) < 30
    assert str(os.getpid()) not in run("ls /proc").split()


def test_nothing_but_loopback(run: Run) -> None:
    assert run("ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1").split() == [
        "lo"
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert "refused" in run(f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' 2>&1")


def test_the_hosts_files_are_not_there(run: Run, provider: LocalProvider, handle: Handle) -> None:
    secret = Path(handle.guest_socket).parent.parent / "record.json"
    assert secret.stat().st_mode & 0o077 == 0
    assert "No such file" in run(f"cat {secret} 2>&1")
    assert "No such file" in run("ls /etc/shadow 2>&1")
    assert "Read-only" in run("touch /usr/x 2>&1") or "denied" in run("touch /usr/x 2>&1")


def test_shared_folders_can_be_read_only(run: Run) -> None:
    assert "shared" in run("cat /opt/pages/page.html")
    refused = run("touch /opt/pages/x 2>&1")
    assert "Read-only" in refused or "denied" in refused


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user is the folder's owner inside too")
def test_the_sandbox_cannot_change_where_the_host_looks(run: Run) -> None:
    assert "denied" in run("ln -sf /x /run/tandem/guest.sock 2>&1")
    assert "denied" in run("mv /run/tandem/rfb.sock /run/tandem/y 2>&1")


def test_memory_is_limited(
    provider: LocalProvider, handle: Handle, desktop: Desktop, run: Run
) -> None:
    if not str(desktop.health()["limits"]).startswith("cgroup"):
        pytest.skip("no cgroup can be written here: only processes are limited")
    out = run("python3 -c 'x = bytearray(600 << 20); print(len(x))' 2>&1; echo status $?")
    assert "status 137" in out
    assert provider.alive(handle)


def test_processes_are_limited(provider: LocalProvider) -> None:
    handle = provider.start(SandboxSpec("crowded", pids=200))  # its own: it has no room afterwards
    try:
        desktop = provider.connect(handle)
        desktop.fence(1)
        command = "for i in $(seq 400); do sleep 1 & done 2>&1"
        out = desktop.shell(command, epoch=1, action_id=new_id()).output
        assert "fork" in out or "Resource temporarily unavailable" in out
        desktop.close()
    finally:
        provider.stop(handle)


def test_the_screen_wants_its_password(handle: Handle) -> None:
    with socket.socket(socket.AF_UNIX) as rfb:
        rfb.connect(handle.rfb_socket)
        assert rfb.recv(12) == b"RFB 003.008\n"
        rfb.sendall(b"RFB 003.008\n")
        offered = rfb.recv(16)
    assert offered == b"\x01\x02"  # one security type: VncAuth
    assert len(handle.rfb_password) == 8


def test_another_process_finds_and_ends_it(provider: LocalProvider) -> None:
    handle = provider.start(SandboxSpec("adopted"))
    state = Path(handle.guest_socket).parent.parent.parent
    code = (
        "import sys; from pathlib import Path\n"
        "from sandbox.providers import load\n"
        "provider = load('local', state=Path(sys.argv[1]))\n"
        "handle = next(h for h in provider.running() if h.name == 'adopted')\n"
        "print(provider.connect(handle).health()['boot_id'])\n"
        "provider.stop(handle)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(state)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == handle.boot_id
    assert not provider.alive(handle)
    assert _processes_of(handle) == []


def test_stop_leaves_nothing(provider: LocalProvider) -> None:
    handle = provider.start(SandboxSpec("traceless"))
    folder = Path(handle.guest_socket).parent.parent
    desktop = provider.connect(handle)
    desktop.fence(1)
    mark = f"98765{os.getpid()}"  # this run's own: others may be at it beside
    desktop.launch(["sh", "-c", f"setsid sleep {mark} & sleep {mark}"], epoch=1, action_id="a")
    until(lambda: _sleeping(mark), "the programs to run")
    provider.stop(handle)
    assert _processes_of(handle) == []
    assert not folder.exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/**/tandem/traceless-{handle.boot_id[:12]}"))
    assert not _sleeping(mark)


def _sleeping(mark: str) -> bool:
    command = ["pgrep", "-f", f"^sleep {mark}$"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_guest_that_hides_its_first_process_is_ended_all_the_same(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without control groups to kill by: its processes are found without their command lines."""
    monkeypatch.setattr(limits, "create", lambda spec, group: limits.Limits("rlimits", ()))
    handle = provider.start(SandboxSpec("hidden"))
    desktop = provider.connect(handle)
    desktop.fence(1)
    code = (
        "import os; fields = open('/proc/1/stat').read().rpartition(')')[2].split()\n"
        "begin, end = int(fields[45]), int(fields[46])\n"
        "os.pwrite(os.open('/proc/1/mem', os.O_RDWR), bytes(end - begin), begin)"
    )
    desktop.launch(["python3", "-c", code], epoch=1, action_id=new_id())
    until(lambda: not provider.alive(handle), "the command line to be gone")
    assert _runs(handle.pid)
    provider.stop(handle)
    assert not _runs(handle.pid)
    assert not Path(handle.guest_socket).parent.parent.exists()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_an_interrupted_start_can_be_cleared(provider: LocalProvider) -> None:
    handle = provider.start(SandboxSpec("interrupted"))
    folder = Path(handle.guest_socket).parent.parent
    record = (folder / "record.json").read_text()
    (folder / "record.json").write_text(record.replace(f'"pid": {handle.pid}', '"pid": 0'))
    [found] = [h for h in provider.running() if h.name == "interrupted"]
    assert not provider.alive(found)
    provider.stop(found)
    assert _processes_of(handle) == []
    assert not folder.exists()


def test_a_start_that_fails_says_why_and_leaves_nothing(
    provider: LocalProvider, tmp_path: Path
) -> None:
    with pytest.raises(ProvisionFailed, match="missing into a sandbox"):
        provider.start(SandboxSpec("bad", shared={"/opt/x": tmp_path / "missing"}))
    if os.geteuid() == 0:
        (tmp_path / "closed").mkdir(mode=0o700)
        with pytest.raises(ProvisionFailed, match=r"chmod -R o\+rX"):
            provider.start(SandboxSpec("bad", shared={"/opt/x": tmp_path / "closed"}))
    with pytest.raises(ProvisionFailed, match=r"Xvnc ended with status"):
        provider.start(SandboxSpec("bad", width=0))
    with pytest.raises(ProvisionFailed, match="no network"):
        provider.start(SandboxSpec("bad", network="open"))
    with pytest.raises(ProvisionFailed, match="TANDEM_STATE"):
        LocalProvider(tmp_path / ("x" * 120)).start(SandboxSpec("bad"))
    assert "bad" not in [handle.name for handle in provider.running()]
