"""`python -m guest.door`: a computer's guest and screen on one TCP port, for a host elsewhere.

A caller speaks TLS, sends one line `tandem-door/1 SERVICE SECRET` and gets `ok`; from then on bytes
are copied to what SERVICE ("guest" or "rfb") names, and nothing else is reachable. The caller knows
the certificate beforehand; who does not know the secret learns nothing and is not told why.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hmac
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

GREETING = "tandem-door/1"
MIN_SECRET = 32
MAX_CALLERS = 64
_PREAMBLE_S = 10.0
_MAX_LINE = 512
_CHUNK = 1 << 16


class DoorProblem(Exception):
    """The door can't be opened; the message names the file or address."""


@dataclass(frozen=True, slots=True)
class Door:
    """What stands behind the port: `services` maps a service to a socket's path or HOST:PORT."""

    secret: str
    services: dict[str, str]

    async def serve(self, listen: str, context: ssl.SSLContext) -> None:
        """Serve until cancelled; raises DoorProblem if `listen` (HOST:PORT) can't be had."""
        host, _, port = listen.rpartition(":")
        try:
            server = await asyncio.start_server(
                self._guarded(), host or None, int(port), ssl=context, limit=_MAX_LINE,
                ssl_handshake_timeout=_PREAMBLE_S,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise DoorProblem(f"can't listen on {listen}: {error}") from error
        async with server:
            await server.serve_forever()

    def _guarded(self) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        """Return what takes a caller: a flood of them is turned away without being listened to."""
        inside = 0

        async def caller(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal inside
            inside += 1
            try:
                if inside <= MAX_CALLERS:
                    await self._let_in(reader, writer)
            finally:
                inside -= 1
                writer.close()

        return caller

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_PREAMBLE_S):
                words = (await reader.readline()).decode("ascii").split()
                if len(words) != 3 or words[0] != GREETING:
                    return
                if not hmac.compare_digest(words[2], self.secret) or words[1] not in self.services:
                    return
                inner, outer = await dial(self.services[words[1]])
                writer.write(b"ok\n")
            try:
                await copy_both(reader, writer, inner, outer)
            finally:
                outer.close()


async def dial(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a unix socket's path or to HOST:PORT; raises OSError."""
    if address.startswith("/"):
        return await asyncio.open_unix_connection(address)
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def copy_both(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    inner: asyncio.StreamReader,
    outer: asyncio.StreamWriter,
) -> None:
    """Copy bytes both ways until one side ends; a slow reader makes its writer wait."""

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                target.write(data)
                await target.drain()

    ways = [asyncio.ensure_future(copy(reader, outer)), asyncio.ensure_future(copy(inner, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()


def secret_in(path: Path) -> str:
    """Return the secret in a file; raises DoorProblem if it is short or has blanks."""
    try:
        secret = path.read_text().strip()
    except OSError as error:
        raise DoorProblem(f"can't read {path}: {error.strerror}") from error
    if len(secret) < MIN_SECRET or not secret.isascii() or len(secret.split()) != 1:
        raise DoorProblem(
            f"{path} must hold one word of {MIN_SECRET} to 256 characters: openssl rand -hex 32"
        )
    return secret


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="guest.door", description=__doc__)
    parser.add_argument("--listen", required=True, help="HOST:PORT")
    parser.add_argument("--certificate", required=True, help="PEM file: certificate and key")
    parser.add_argument("--secret", type=Path, required=True, help="file with the secret")
    parser.add_argument("--guest", required=True, help="the guest's socket")
    parser.add_argument("--rfb", required=True, help="the screen's socket, or HOST:PORT")
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    try:
        context.load_cert_chain(options.certificate)
        door = Door(secret_in(options.secret), {"guest": options.guest, "rfb": options.rfb})
        asyncio.run(door.serve(options.listen, context))
    except (DoorProblem, OSError) as error:
        raise SystemExit(f"guest.door: {error}") from error


if __name__ == "__main__":
    main()
