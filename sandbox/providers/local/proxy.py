"""`python -m sandbox.providers.local.proxy`: the one way out of one sandbox, an HTTP proxy on a unix socket.

The sandbox's network namespace has nothing but its loopback: no route exists that a program could use past
this process. It looks names up itself, as an unprivileged user, and logs what it refuses.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures.thread
import encodings.idna
import json
import os
import resource
import socket
import time
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

from sandbox.providers.local.egress import Refused, Rule, check_address, check_name, parse

_HEAD_BYTES, _HEAD_S = 64 << 10, 15.0
_CONNECT_S, _IDLE_S = 15.0, 300.0
_CONNECTIONS, _CHUNK = 128, 64 << 10
_LOG_BYTES = 1 << 20
_NOBODY = 65534
_HOP = (
    "proxy-connection",
    "proxy-authorization",
    "connection",
    "keep-alive",
    "host",
    "te",
    "upgrade",
)
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where a request wants to go; `head` is what is sent there first (none for a tunnel)."""

    host: str
    port: int
    head: bytes


class Proxy:
    """Serves one sandbox; `log` gets a line of JSON for each refusal, up to 1 MiB in all."""

    def __init__(self, rules: tuple[Rule, ...], log: IO[str]) -> None:
        self._rules, self._log = rules, log
        self._logged = self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the sandbox to its end."""
        self._open += 1
        try:
            if self._open > _CONNECTIONS:
                await _answer(writer, 503, f"more than {_CONNECTIONS} connections at once")
                return
            await self._serve(reader, writer)
        except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError):
            pass  # either side left; whatever it was, it concerns this connection alone
        finally:
            self._open -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            asked = _read(head)
        except ValueError as error:
            await _answer(writer, 400, str(error))
            return
        try:
            async with asyncio.timeout(_CONNECT_S):
                there = await self._connect(asked)
        except Refused as refusal:
            self._note(asked, str(refusal))
            await _answer(writer, 403, f"refused by the sandbox's network policy: {refusal}")
            return
        except (OSError, TimeoutError) as error:
            await _answer(writer, 502, f"can't connect to {asked.host}:{asked.port}: {error!r}")
            return
        if asked.head:
            there[1].write(asked.head)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await _splice((reader, writer), there)

    async def _connect(self, asked: _Asked) -> _Streams:
        name = check_name(self._rules, asked.host, asked.port)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(name, asked.port, type=socket.SOCK_STREAM)
        for *_, address in found:
            check_address(str(address[0]))
        problem: OSError | None = None
        for family, kind, protocol, _, address in found:
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            try:
                if _ours(family, address):
                    raise Refused(f"{address[0]} is this host itself")
                await loop.sock_connect(connection, address)
                return await asyncio.open_connection(sock=connection)
            except OSError as error:
                connection.close()
                problem = error
            except BaseException:
                connection.close()
                raise
        raise problem or OSError("the name has no address")

    def _note(self, asked: _Asked, why: str) -> None:
        line = json.dumps(
            {"at": time.time(), "host": asked.host[:253], "port": asked.port, "why": why}
        )
        self._logged += len(line) + 1
        if self._logged <= _LOG_BYTES:
            self._log.write(f"{line}\n")
            self._log.flush()


def _read(head: bytes) -> _Asked:
    """Return where a request goes; raises ValueError for what no proxy's client sends."""
    lines = head.decode("latin-1").split("\r\n")
    # Some servers take these for the end of a line: a second Host would follow.
    if any(sign in line for line in lines for sign in "\r\n\0"):
        raise ValueError("a line of a request ends in CR LF")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ValueError("a request to a proxy begins with METHOD TARGET HTTP/1.1")
    method, target, version = words
    if method == "CONNECT":
        parts = urlsplit(f"//{target}")
        if not parts.hostname or not parts.port:
            raise ValueError("CONNECT wants host:port")
        return _Asked(parts.hostname, parts.port, b"")
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("a proxy wants a whole address: http://host/path")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = [line for line in lines[1:-2] if line.partition(":")[0].strip().lower() not in _HOP]
    # The server is told the host that was judged, and one request a connection: no second is smuggled in.
    host = parts.netloc.rpartition("@")[2]
    sent = [f"{method} {path} {version}", f"Host: {host}", "Connection: close", *fields]
    return _Asked(parts.hostname, parts.port or 80, "\r\n".join([*sent, "", ""]).encode("latin-1"))


def _ours(family: int, address: tuple[object, ...]) -> bool:
    """Whether `address` is one of this host's: then its own services would answer."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return bool(probe.getsockname()[0] == address[0])


async def _answer(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = f"{text}\n".encode(errors="replace")
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


async def _splice(here: _Streams, there: _Streams) -> None:
    """Copy both ways until both sides have said all, or nothing passes for minutes."""

    loop = asyncio.get_running_loop()
    passed = loop.time()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal passed
        while data := await reader.read(_CHUNK):
            passed = loop.time()
            writer.write(data)
            await writer.drain()
            passed = loop.time()
        if writer.can_write_eof():
            writer.write_eof()

    async def watch() -> None:
        # Both ways together: while a file comes down, nothing goes up.
        while (left := passed + _IDLE_S - loop.time()) > 0:
            await asyncio.sleep(left)
        raise TimeoutError

    try:
        async with asyncio.TaskGroup() as group:
            idle = group.create_task(watch())
            up = group.create_task(copy(here[0], there[1]))
            down = group.create_task(copy(there[0], here[1]))
            await asyncio.wait((up, down))
            idle.cancel()
    except* (OSError, TimeoutError):
        pass
    finally:
        there[1].close()


def _confine() -> None:
    """Give up what a parser of hostile requests must not have."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * _LOG_BYTES, 2 * _LOG_BYTES))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


async def _run(listener: socket.socket, proxy: Proxy) -> None:
    # The resolver's own: asyncio would look for its module once the files are out of reach.
    resolver = concurrent.futures.thread.ThreadPoolExecutor(16, thread_name_prefix="resolve")
    asyncio.get_running_loop().set_default_executor(resolver)
    server = await asyncio.start_unix_server(proxy.serve, sock=listener, limit=_HEAD_BYTES)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="sandbox.providers.local.proxy", description=__doc__)
    parser.add_argument("--listener", type=int, required=True, help="descriptor of the unix socket")
    parser.add_argument("--log", required=True)
    parser.add_argument("--boot-id", required=True, help="names the sandbox on the command line")
    parser.add_argument("--allow", action="append", default=[])
    options = parser.parse_args()
    rules = tuple(parse(text) for text in options.allow)
    listener = socket.socket(fileno=options.listener)
    with open(options.log, "w", encoding="utf-8") as log:
        assert encodings.idna is not None  # looked for by the resolver, once files are out of reach
        _confine()
        asyncio.run(_run(listener, Proxy(rules, log)))


if __name__ == "__main__":
    main()
