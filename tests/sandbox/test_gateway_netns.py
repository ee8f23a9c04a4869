"""Web and host on two machines, as near as one machine comes to it: two network namespaces and one port.

The host's sandboxes lie in a folder that only its own mount namespace has, so no unix socket of
theirs can be reached from here; its firewall lets in the gateway's port and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from sandbox.gateway import certificates
from sandbox.leasing import leases
from sandbox.models import Host, Lease, Sandbox
from sandbox.provider import DesktopLost, StaleLease
from sandbox.screen import backend, tickets
from sandbox.screen.gate import Grant
from tests.sandbox.desktops import needs_local, new_id
from tests.sandbox.gateways import HOST
from trajectory import Click

PORT = 7443
WEB_IP, HOST_IP = "10.213.77.1", "10.213.77.2"
_MANAGE = Path(__file__).parents[2] / "manage.py"


def _joined() -> str:
    """Say why no two joined namespaces can be made here; "" if they can."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    for program, package in (("ip", "iproute2"), ("nft", "nftables")):
        if shutil.which(program) is None:
            return f"needs {program}: apt-get install {package}"
    tried = subprocess.run(["ip", "netns", "add", "tdprobe"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", "tdprobe"], capture_output=True, check=False)
    return (
        "" if tried.returncode == 0 else f"no network namespaces: {tried.stderr.decode().strip()}"
    )


WHY_NOT = _joined()
pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_local,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "fine"),
]


def run(*argv: str, stdin: str = "") -> None:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, (argv, done.stderr)


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace joined to this one by a pair of interfaces; only PORT comes in."""
    name = f"td{os.getpid()}"
    outer, inner = f"{name}a"[:15], f"{name}b"[:15]
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        run("ip", "addr", "add", f"{WEB_IP}/30", "dev", outer)
        run("ip", "link", "set", outer, "up")
        run("ip", "-n", name, "addr", "add", f"{HOST_IP}/30", "dev", inner)
        run("ip", "-n", name, "link", "set", inner, "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        rules = (
            "table inet only {\n"
            " chain in { type filter hook input priority 0; policy drop;\n"
            f"  iif lo accept; tcp dport {PORT} accept; }}\n"
            " chain out { type filter hook output priority 0; policy drop;\n"
            f"  oif lo accept; tcp sport {PORT} accept; }}\n}}"
        )
        run("ip", "netns", "exec", name, "nft", "-f", "-", stdin=rules)
        yield name
    finally:
        run("ip", "netns", "del", name)
        subprocess.run(["ip", "link", "del", outer], capture_output=True, check=False)


@contextmanager
def database_socket(folder: Path) -> Iterator[Path]:
    """The test database as a unix socket: the one thing besides PORT that the host shares with us."""
    port = int(connection.settings_dict["PORT"])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / ".s.PGSQL.5432"))
    listener.listen()

    def copy(near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            while True:
                for side in select.select([near, far], [], [])[0]:
                    data = side.recv(1 << 16)
                    if not data:
                        return
                    (far if side is near else near).sendall(data)

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=copy, args=(near,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield folder
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


# The host's own settings: where its database is, and the folder that only it can see.
_HOST = """
import sys
from django.conf import settings
settings.DATABASES["default"].update(HOST=sys.argv[1], PORT="5432", NAME=sys.argv[2],
                                     USER=sys.argv[3], PASSWORD=sys.argv[4])
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[5:]])
"""


@pytest.fixture
def far_host(
    namespace: str, tmp_path: Path, transactional_db: None, postgres: Any, settings: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A sandbox host in that namespace, with one warm desktop."""
    authority, theirs = tmp_path / "tls", tmp_path / "host-tls"
    certificates.make_authority(authority)
    certificates.issue(authority, role="client", name="web-1", into=authority)
    certificates.issue(authority, role="host", name=HOST, into=theirs)
    settings.SANDBOX_TLS, settings.SANDBOX_HOST = authority, "web"
    hidden = tempfile.mkdtemp(prefix="td")  # short: a unix socket's path has 107 bytes
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": str(_MANAGE.parent),
        "SANDBOX_TLS": str(theirs), "TANDEM_STATE": hidden, "SANDBOX_PROVIDER": "local",
        "SANDBOX_POOL_SIZE": "1", "SANDBOX_MAX": "1", "SECRET_KEY": settings.SECRET_KEY,
    }  # fmt: skip
    with database_socket(tmp_path) as database:
        command = [
            "ip", "netns", "exec", namespace,
            "sh", "-c", f'mount -t tmpfs -o mode=755 hidden {hidden} && exec "$@"', "host",
            sys.executable, "-c", _HOST, str(database), connection.settings_dict["NAME"],
            postgres.user, postgres.password,
            "sandbox_host", "--name", HOST, "--address", f"{HOST_IP}:{PORT}",
            "--stop-desktops-on-exit",
        ]  # fmt: skip
        with (tmp_path / "host.log").open("wb") as log:
            host = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield host
        finally:
            host.terminate()
            try:
                host.wait(20)
            except subprocess.TimeoutExpired:
                host.kill()
                host.wait()
            os.rmdir(hidden)


def _ready(host: subprocess.Popen[bytes], log: Path) -> Sandbox:
    deadline = time.monotonic() + 90
    while True:
        row = Sandbox.objects.filter(state=Sandbox.State.READY).first()
        if row is not None and Host.objects.filter(name=HOST).exclude(address="").exists():
            return row
        assert host.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)


async def _screen(grant: Grant) -> bytes:
    desk, init = await backend.connect(grant.rfb_socket, grant.rfb_password, grant.gateway)
    try:
        while len(init) < 4:
            init += await desk.read()
        return init
    finally:
        desk.close()


@pytest.mark.timeout(200)
def test_a_desktop_is_used_through_one_port(
    far_host: subprocess.Popen[bytes], tmp_path: Path, annotator: Any
) -> None:
    row = _ready(far_host, tmp_path / "host.log")
    handle = row.as_handle()
    assert not Path(handle.guest_socket).exists()  # it is not of this machine
    with pytest.raises(OSError):
        socket.create_connection((HOST_IP, PORT + 1), 1)
    lease = leases.acquire(owner=annotator, purpose="human", idempotency_key="far")
    desktop = leases.connect(lease)
    frame = desktop.observe()
    assert (frame.width, frame.height) == (row.width, row.height)
    desktop.perform(Click(40, 40), epoch=lease.epoch, action_id=new_id())
    token = tickets.issue(user=annotator, lease=lease, mode="view")
    grant = tickets.redeem(token)
    assert isinstance(grant, Grant) and grant.gateway is not None
    width_height = asyncio.run(_screen(grant))[:4]
    assert width_height == row.width.to_bytes(2, "big") + row.height.to_bytes(2, "big")
    leases.release(lease, reason="done")
    with pytest.raises((StaleLease, DesktopLost)):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            desktop.observe()
    assert Lease.objects.get(pk=lease.pk).state == Lease.State.RELEASED
    desktop.close()
