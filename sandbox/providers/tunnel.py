"""`python -m sandbox.providers.tunnel FOLDER`: a far computer's guest and screen as unix sockets here.

So everything above a provider dials the same two files, wherever the computer is. One process per
sandbox: it outlives the host that started it, and killing it cuts that sandbox off and no other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from guest.door import GREETING, copy_both, dial
from sandbox.provider import DesktopLost, ProvisionFailed
from sandbox.providers import records

DIAL_S = 5.0
_UP_WITHIN_S = 15.0
_DOWN_WITHIN_S = 5.0
_LOOK_EVERY_S = 2.0
_MAX_LOG = 64 << 10
_MAX_ANSWER = 16 << 10
_FILE = "way.json"


@dataclass(frozen=True, slots=True)
class Way:
    """How to reach a computer: addresses are "door://HOST:PORT" or "tcp://HOST:PORT".

    A door wants `secret` and shows `certificate` (PEM, known beforehand). Plain TCP is for the near
    end of an ssh tunnel: whoever makes a Way sees to it that it does not leave this machine.
    """

    guest: str
    rfb: str
    certificate: str = ""
    secret: str = field(default="", repr=False)


def open_way(folder: Path, way: Way, *, boot_id: str) -> int:
    """Start the tunnel of a sandbox and wait until its sockets are there; return its pid.

    Raises ProvisionFailed with what it said.
    """
    part = folder / f"{_FILE}.part"
    part.touch(mode=0o600)
    part.write_text(json.dumps(asdict(way)))
    part.replace(folder / _FILE)
    run = folder / "run"
    run.mkdir(mode=0o700)
    command = [sys.executable, "-m", "sandbox.providers.tunnel", str(folder), "--boot-id", boot_id]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    deadline = time.monotonic() + _UP_WITHIN_S
    while not (run / "ready").exists():
        if process.poll() is not None:
            raise ProvisionFailed(f"the tunnel ended while starting: {log_tail(folder)}")
        if time.monotonic() > deadline:
            process.kill()
            raise ProvisionFailed(f"the tunnel was not up within {_UP_WITHIN_S:g} s")
        time.sleep(0.005)
    return process.pid


def close_way(pid: int, boot_id: str) -> None:
    """Kill a tunnel and wait until it is gone; fine if it is. Raises DesktopLost if it stays."""
    deadline = time.monotonic() + _DOWN_WITHIN_S
    while records.runs(pid, boot_id):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise DesktopLost(f"the tunnel, process {pid}, survives SIGKILL")
        time.sleep(0.005)


def log_tail(folder: Path) -> str:
    """Return the last line that the tunnel of a sandbox printed: why it could not get through."""
    with contextlib.suppress(OSError):
        if lines := (folder / "log.txt").read_text(errors="replace").split("\n")[-20:]:
            return next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return "no log"


async def reach(way: Way, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a far computer's "guest" or "rfb"; raises OSError saying which address refused."""
    address = way.guest if service == "guest" else way.rfb
    scheme, _, place = address.partition("://")
    try:
        async with asyncio.timeout(DIAL_S):
            if scheme == "tcp":
                return await dial(place)
            return await _through_door(way, service, place)
    except TimeoutError:
        raise OSError(f"{address} did not answer within {DIAL_S:g} s") from None
    except OSError as error:
        raise OSError(f"{address}: {error}") from error


async def health(way: Way) -> dict[str, object]:
    """Ask a far guest how it is, without a tunnel; raises OSError, ValueError."""
    reader, writer = await reach(way, "guest")
    try:
        async with asyncio.timeout(DIAL_S):
            writer.write(b"GET /v1/health HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n")
            answer = await reader.read(_MAX_ANSWER)
            while more := await reader.read(_MAX_ANSWER - len(answer)):
                answer += more
    except TimeoutError:
        raise OSError(f"{way.guest}: its guest did not answer within {DIAL_S:g} s") from None
    finally:
        writer.close()
    found = json.loads(answer.partition(b"\r\n\r\n")[2])
    if not isinstance(found, dict):
        raise ValueError(f"{way.guest} answers no health")
    return found


async def _through_door(
    way: Way, service: str, place: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = place.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The one certificate that we know is trusted, whatever name or address it is reached by.
    context.check_hostname = False
    context.load_verify_locations(cadata=way.certificate)
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    writer.write(f"{GREETING} {service} {way.secret}\n".encode())
    if await reader.readline() != b"ok\n":
        writer.close()
        raise OSError(f"the door did not open for {service}: wrong secret, or nothing behind it")
    return reader, writer


async def _serve(folder: Path, way: Way) -> None:
    run = folder / "run"
    for service in ("guest", "rfb"):
        await asyncio.start_unix_server(_caller(way, service), run / f"{service}.sock")
    (run / "ready").touch()
    # Whoever removes a sandbox may not know the process that belonged to it.
    while run.exists():
        await asyncio.sleep(_LOOK_EVERY_S)


def _caller(
    way: Way, service: str
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await reach(way, service)
        except (OSError, ValueError) as error:
            _say(str(error))
            return writer.close()
        try:
            await copy_both(reader, writer, inner, outer)
        finally:
            outer.close()
            writer.close()

    return call


def _say(what: str) -> None:
    """Print, into a log that never grows beyond a bound."""
    if os.fstat(1).st_size > _MAX_LOG:
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)
    print(what, flush=True)


def main() -> None:
    """Serve until killed, or until the sandbox's folder is gone."""
    parser = argparse.ArgumentParser(prog="sandbox.providers.tunnel", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--boot-id", required=True, help="so that the process can be told apart")
    options = parser.parse_args()
    os.umask(0o077)
    way = Way(**json.loads((options.folder / _FILE).read_text()))
    asyncio.run(_serve(options.folder, way))


if __name__ == "__main__":
    main()
