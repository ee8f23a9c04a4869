"""The way to a computer: its unix socket on this host, or the gateway of the host that it is on.

No Django: whoever reads the rows says which way (`sandbox.gateway.routes`).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpcore
import httpx

from sandbox.gateway import certificates, wire
from sandbox.provider import DesktopLost

# Found dead within about half a minute, however quiet the connection is.
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
KEPT_S = 60.0
"""How long a connection without a request is kept: opening one costs a TLS handshake."""

_KEPT_HERE_S = 5.0
_MOST_HERE = 100


@dataclass(frozen=True, slots=True)
class Gateway:
    """How to reach one computer on another host, for one lease.

    `address` is "host:port"; `host` is the name that the gateway's certificate must carry; `sign`
    gives a fresh one-time token for a service. `folder` holds our certificate and the authority's.
    """

    host: str
    address: str
    folder: Path
    sandbox: str
    epoch: int
    sign: Callable[[str], str] = field(repr=False)

    def hello(self, service: str) -> bytes:
        """Return the preamble of one new connection."""
        return wire.hello(wire.Preamble(self.sandbox, service, self.epoch, self.sign(service)))

    def place(self) -> tuple[str, int]:
        """Return (name or IP address, port); raises DesktopLost if the row holds neither."""
        name, _, port = self.address.rpartition(":")
        if not name or not port.isdecimal():
            raise DesktopLost(f"the address of host {self.host} is {self.address!r}, not NAME:PORT")
        return name.strip("[]"), int(port)


def transport(path: str, gateway: Gateway | None = None) -> httpx.HTTPTransport:
    """Return httpx's transport to the guest at `path`, or behind `gateway`.

    Its requests also raise StaleLease and DesktopLost with the gateway's own reason.
    """
    # No TLS by httpx: making its context would cost 40 ms a connection.
    made = httpx.HTTPTransport(verify=False)
    if gateway is None:
        made._pool = httpcore.ConnectionPool(
            uds=path,
            network_backend=_Here(),
            max_connections=_MOST_HERE,
            keepalive_expiry=_KEPT_HERE_S,
        )
    else:
        made._pool = httpcore.ConnectionPool(
            network_backend=_ThroughGateway(gateway), keepalive_expiry=KEPT_S
        )
    return made


class _InTime(httpcore.NetworkStream):
    """A connection whose answers come whole within the time that httpcore gives to each read.

    Otherwise a guest that says one byte of its headers at a time would hold its caller for days.
    """

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._asked_at = time.monotonic()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if timeout is not None:
            timeout -= time.monotonic() - self._asked_at
            if timeout <= 0:
                raise httpcore.ReadTimeout("not all was said in time")
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)
        self._asked_at = time.monotonic()

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Here(httpcore.NetworkBackend):
    """Opens every connection at the guest's unix socket."""

    def __init__(self) -> None:
        self._unix = httpcore.SyncBackend()

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _InTime(self._unix.connect_unix_socket(path, timeout, socket_options))


class _ThroughGateway(httpcore.NetworkBackend):
    """Opens every connection at the gateway, whatever host is asked for."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tcp = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        gateway = self._gateway
        context = _context(gateway)
        plain = self._tcp.connect_tcp(*gateway.place(), timeout, socket_options=KEEPALIVE)
        try:
            stream = plain.start_tls(context, gateway.host, timeout)
            stream.write(gateway.hello("guest"), timeout)
            answer = b""
            while (need := _missing(answer, gateway)) > 0:
                data = stream.read(need, timeout)
                if not data:
                    raise _hung_up(gateway)
                answer += data
            wire.raise_refusal(answer, gateway=gateway.address)
        except BaseException:
            plain.close()
            raise
        return _InTime(stream)


async def connect(
    protocol: asyncio.BufferedProtocol, path: str, service: str, gateway: Gateway | None = None
) -> None:
    """Connect `protocol` to the unix socket at `path`, or to `service` behind `gateway`.

    Raises OSError, StaleLease, DesktopLost.
    """
    loop = asyncio.get_running_loop()
    if gateway is None:
        await loop.create_unix_connection(lambda: protocol, path)
        return
    name, port = gateway.place()
    transport, opening = await loop.create_connection(
        lambda: _Opening(gateway, service, protocol),
        name,
        port,
        ssl=_context(gateway),
        server_hostname=gateway.host,
    )
    try:
        for option in KEEPALIVE:
            transport.get_extra_info("socket").setsockopt(*option)
        await opening.opened
    except BaseException:
        transport.abort()
        raise


class _Opening(asyncio.Protocol):
    """Says hello to a gateway, and hands the connection over once it is let in."""

    def __init__(self, gateway: Gateway, service: str, protocol: asyncio.BufferedProtocol) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gateway, self._service, self._protocol = gateway, service, protocol
        self._transport: asyncio.Transport | None = None
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._gateway.hello(self._service))

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._answer += data
        try:
            need = _missing(self._answer, self._gateway)
            if need > 0:
                return
            end = len(self._answer) + need
            wire.raise_refusal(self._answer[:end], gateway=self._gateway.address)
        except Exception as error:
            self._fail(error)
            self._transport.abort()
            return
        protocol = self._protocol
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        rest = memoryview(self._answer)[end:]
        while rest:
            buffer = memoryview(protocol.get_buffer(len(rest)))[: len(rest)]
            buffer[:] = rest[: len(buffer)]
            rest = rest[len(buffer) :]
            protocol.buffer_updated(len(buffer))
        if not self.opened.done():
            self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(_hung_up(self._gateway, exc))

    def _fail(self, error: Exception) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)


def _context(gateway: Gateway) -> ssl.SSLContext:
    try:
        return certificates.client_context(gateway.folder)
    except certificates.CertificateProblem as error:
        raise DesktopLost(f"can't show gateway {gateway.address} who we are: {error}") from error


def _missing(answer: bytes, gateway: Gateway) -> int:
    try:
        return wire.missing(answer)
    except wire.WireError as error:
        raise DesktopLost(f"{gateway.address} is no gateway of ours: {error}") from error


def _hung_up(gateway: Gateway, error: Exception | None = None) -> DesktopLost:
    # Under TLS 1.3 a gateway that does not accept our certificate says so only now.
    why = f": {error}" if error else " without a word: is our client certificate of its authority?"
    return DesktopLost(f"gateway {gateway.address} hung up{why}")


async def port(
    path: str, number: int, epoch: int, gateway: Gateway | None = None, *, timeout: float | None
) -> httpcore.AsyncNetworkStream:
    """Connect to TCP port `number` on a computer's own loopback, by its guest at `path`.

    Raises PortClosed, StaleLease, DesktopLost, httpcore's ConnectError and ConnectTimeout.
    """
    net = httpcore.AnyIOBackend()
    if gateway is None:
        stream = await net.connect_unix_socket(path, timeout)
        hello = wire.connect(number, epoch)
    else:
        stream = await net.connect_tcp(*gateway.place(), timeout, socket_options=KEEPALIVE)
        hello = gateway.hello(f"port:{number}")
    try:
        if gateway is not None:
            stream = await stream.start_tls(_context(gateway), gateway.host, timeout)
        await stream.write(hello, timeout)
        answer = b""
        while (need := _still(answer, gateway)) > 0:
            data = await stream.read(need, timeout)
            if not data:
                raise _hung_up(gateway) if gateway else DesktopLost("the guest hung up")
            answer += data
        if gateway is None:
            wire.raise_unconnected(answer, port=number)
        else:
            wire.raise_refusal(answer, gateway=gateway.address)
    except BaseException:
        await stream.aclose()
        raise
    return stream


def _still(answer: bytes, gateway: Gateway | None) -> int:
    return _missing(answer, gateway) if gateway else len(wire.ADMITTED) - len(answer)
