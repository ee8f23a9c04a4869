"""What the container provider promises beyond the contract: isolation, limits, causes, no traces."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.images import container as image
from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers.container import engine
from sandbox.providers.container.provider import ContainerProvider
from sandbox.providers.container.shape import container_name
from tests.sandbox.desktops import needs_container, new_id, skip_without_image

pytestmark = needs_container
Run = Callable[[str], str]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> ContainerProvider:
    skip_without_image()
    return ContainerProvider(tmp_path_factory.mktemp("sb"))


@pytest.fixture(scope="module")
def handle(
    provider: ContainerProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Handle]:
    shared = tmp_path_factory.mktemp("shared")
    shared.chmod(0o755)
    (shared / "page.html").write_text("<title>shared</title>")
    spec = SandboxSpec("boxed", memory_mb=500, pids=200, shared={"/opt/pages": shared})
    handle = provider.start(spec)
    yield handle
    provider.stop(handle)


@pytest.fixture(scope="module")
def desktop(provider: ContainerProvider, handle: Handle) -> Iterator[Desktop]:
    desktop = provider.connect(handle)
    desktop.fence(1)
    yield desktop
    desktop.close()


@pytest.fixture(scope="module")
def run(desktop: Desktop) -> Run:
    return lambda command: desktop.shell(command, epoch=1, action_id=new_id()).output


def _containers(handle: Handle) -> list[str]:
    client = engine.connect()
    try:
        found = client.api.containers(all=True, filters={"name": [container_name(handle.boot_id)]})
        return [container["Id"] for container in found]
    finally:
        client.close()


def test_the_user_inside_is_nobody_special(run: Run, handle: Handle) -> None:
    assert run("whoami").split() == ["user"]
    assert int(run("id -u")) >= 60_500
    status = dict(line.split(":\t", 1) for line in run("cat /proc/self/status").splitlines())
    for rights in ("CapEff", "CapPrm", "CapBnd"):
        assert int(status[rights], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert Path(f"/proc/{handle.pid}").stat().st_uid >= 60_500


def test_what_is_not_its_own_can_only_be_read(run: Run) -> None:
    assert "Read-only" in run("touch /usr/x 2>&1") or "denied" in run("touch /usr/x 2>&1")
    assert "shared" in run("cat /opt/pages/page.html")
    refused = run("touch /opt/pages/x /opt/tandem/guest/x 2>&1")
    assert refused.count("Read-only") + refused.count("denied") == 2


def test_nothing_but_loopback(run: Run) -> None:
    assert run("ls /sys/class/net").split() == ["lo"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert "refused" in run(f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' 2>&1")


def test_the_sandbox_cannot_change_where_the_host_looks(run: Run) -> None:
    assert "denied" in run("ln -sf /x /run/tandem/guest.sock 2>&1")
    assert "denied" in run("mv /run/tandem/rfb.sock /run/tandem/y 2>&1")


def test_the_first_process_buries_the_dead(run: Run) -> None:
    run("for i in 1 2 3; do (setsid true &) ; done")
    assert "Z" not in run(
        "for i in $(seq 50); do ps -eo stat= | grep -q Z || break; done; ps -eo stat="
    )


def test_memory_is_limited(provider: ContainerProvider, handle: Handle, run: Run) -> None:
    out = run("python3 -c 'x = bytearray(700 << 20); print(len(x))' 2>&1; echo status $?")
    assert "status 137" in out
    assert provider.alive(handle)


def test_processes_are_limited(provider: ContainerProvider) -> None:
    handle = provider.start(SandboxSpec("crowded", pids=200))  # its own: it has no room afterwards
    try:
        desktop = provider.connect(handle)
        desktop.fence(1)
        command = "for i in $(seq 400); do sleep 1 & done 2>&1"
        out = desktop.shell(command, epoch=1, action_id=new_id()).output
        assert "fork" in out or "Resource temporarily unavailable" in out
        assert provider.alive(handle)
    finally:
        provider.stop(handle)


def test_the_screen_wants_its_password(handle: Handle) -> None:
    with socket.socket(socket.AF_UNIX) as rfb:
        rfb.connect(handle.rfb_socket)
        assert rfb.recv(12) == b"RFB 003.008\n"
        rfb.sendall(b"RFB 003.008\n")
        assert rfb.recv(16) == b"\x01\x02"  # one security type: VncAuth


def test_a_crash_has_a_cause_and_stop_leaves_nothing(provider: ContainerProvider) -> None:
    handle = provider.start(SandboxSpec("crashing"))
    desktop = provider.connect(handle)
    desktop.fence(1)
    with pytest.raises(DesktopLost):
        desktop.shell("kill -9 $(pidof Xvnc); sleep 9", epoch=1, action_id="a")
    # Another process finds it by what is on disk.
    other = ContainerProvider(Path(handle.guest_socket).parent.parent.parent)
    assert handle in other.running()
    with pytest.raises(DesktopLost, match="its container ended with status 1"):
        other.connect(handle)
    assert "the X server ended with status -9" in other.log(handle)
    other.stop(handle)
    assert _containers(handle) == []
    assert not Path(handle.guest_socket).parent.parent.exists()


def test_a_container_without_its_folder_is_found_by_its_label(provider: ContainerProvider) -> None:
    handle = provider.start(SandboxSpec("orphan"))
    shutil.rmtree(Path(handle.guest_socket).parent.parent)
    [found] = [known for known in provider.running() if known.boot_id == handle.boot_id]
    assert found.name == "orphan"
    provider.stop(found)
    assert _containers(handle) == []
    assert not provider.alive(handle)


def test_what_is_missing_is_named(
    provider: ContainerProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProvisionFailed, match="not a folder"):
        provider.start(SandboxSpec("bad", shared={"/opt/x": tmp_path / "missing"}))
    with pytest.raises(ProvisionFailed, match="no network"):
        provider.start(SandboxSpec("bad", network="everything"))
    with monkeypatch.context() as patched:
        patched.setattr(image, "tag", lambda: f"{image.REPOSITORY}:0000")
        with pytest.raises(ProvisionFailed, match=r"python -m sandbox\.images build container"):
            provider.start(SandboxSpec("bad"))
    with monkeypatch.context() as patched:
        patched.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
        with pytest.raises(ProvisionFailed, match="DOCKER_HOST does not answer"):
            provider.start(SandboxSpec("bad"))
    with monkeypatch.context() as patched:
        patched.delenv("DOCKER_HOST", raising=False)
        patched.setattr(engine, "_DOCKER_SOCKET", tmp_path / "none")
        patched.setattr(engine.shutil, "which", lambda name: None)
        with pytest.raises(ProvisionFailed, match="apt-get install podman runc"):
            engine.connect()
    assert "bad" not in [known.name for known in provider.running()]
