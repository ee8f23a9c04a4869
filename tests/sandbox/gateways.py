"""What tests of the gateway share: its rows, its certificates, a computer behind it, and callers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.utils import timezone

from sandbox.gateway import certificates, wire
from sandbox.gateway.server import Server
from sandbox.gateway.tokens import Claims, sign
from sandbox.models import Host, Lease, Sandbox
from sandbox.provider import Handle
from tests.sandbox.screens import PASSWORD

HOST = "far-host"


def certify(folder: Path, *, host: str = HOST) -> Path:
    """Make an authority with a host's and a caller's certificate in one folder."""
    certificates.make_authority(folder)
    certificates.issue(folder, role="host", name=host, into=folder)
    certificates.issue(folder, role="client", name="web-1", into=folder)
    return folder


@contextmanager
def gateway(folder: Path, *, host: str = HOST) -> Iterator[Server]:
    """Run a gateway on a free port of loopback, and let its host's row say where."""
    server = Server(host=host, listen="127.0.0.1:0", folder=folder)
    server.start()
    Host.objects.update_or_create(name=host, defaults={"address": f"127.0.0.1:{server.port}"})
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def echo(path: Path) -> Iterator[Path]:
    """Run a computer whose every service sends back what it gets."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve(one: socket.socket) -> None:
        with one:
            try:
                while data := one.recv(1 << 16):
                    one.sendall(data)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(one,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield path
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def leased(owner: Any, socket_path: Path | str, *, name: str = "desk-1", host: str = HOST) -> Lease:
    """Return an active lease of a computer on `host` whose sockets are `socket_path`."""
    handle = Handle("local", name, f"boot-{name}", str(socket_path), str(socket_path), PASSWORD)
    sandbox = Sandbox.objects.create(
        name=name, provider="local", host=host, state=Sandbox.State.LEASED, epoch=3,
        handle=Sandbox.handle_record(handle), ready_at=timezone.now(),
    )  # fmt: skip
    until = timezone.now() + timezone.timedelta(hours=1)
    return Lease.objects.create(
        sandbox=sandbox, epoch=3, owner=owner, purpose="human", idempotency_key=f"key-{name}",
        expires_at=until, hard_expires_at=until,
    )  # fmt: skip


def preamble(lease: Lease, service: str = "guest", **changed: Any) -> wire.Preamble:
    """Return what an honest caller says, or one who changed something of it."""
    name = lease.sandbox.name
    claims = {"sandbox": name, "epoch": lease.epoch, "service": service, "mode": "control"}
    token = sign(Claims(lease=lease.pk, **{**claims, **changed.pop("claims", {})}))
    said = {"sandbox": name, "service": service, "epoch": lease.epoch, "token": token}
    return wire.Preamble(**{**said, **changed})


class Caller:
    """One TLS connection to a gateway, spoken by hand."""

    def __init__(self, port: int, context: ssl.SSLContext, *, host: str = HOST) -> None:
        plain = socket.create_connection(("127.0.0.1", port), 10)
        self.socket = context.wrap_socket(plain, server_hostname=host)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, count: int) -> bytes:
        """Return `count` bytes, fewer if the gateway hangs up first."""
        data = b""
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except (ConnectionError, ssl.SSLError):
                break
            if not piece:
                break
            data += piece
        return data

    def answer(self) -> dict[str, Any]:
        data = b""
        while (need := wire.missing(data)) > 0:
            piece = self.read(need)
            if not piece:
                return {}
            data += piece
        return wire.record_of(data)

    def hello(self, said: wire.Preamble) -> dict[str, Any]:
        self.send(wire.hello(said))
        return self.answer()

    def gone(self) -> bool:
        """Wait until the gateway hangs up; whatever it still sends does not count."""
        while self.read(1 << 16):
            pass
        return True


async def in_thread(work: Any, *args: Any) -> Any:
    return await asyncio.to_thread(work, *args)
