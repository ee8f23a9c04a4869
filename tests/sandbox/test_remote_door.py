"""The door of a far computer and the tunnel to it: who gets in, what is carried, what is refused."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guest.door import Door, DoorProblem, secret_in
from sandbox.providers import tunnel
from sandbox.providers.kubernetes import identity
from sandbox.providers.tunnel import Way
from tests.sandbox.far import free_port

KEYS = identity.make("test")


@asynccontextmanager
async def _door(folder: Path) -> AsyncIterator[Way]:
    """A door before an echo, as the guest; behind "rfb" there is nothing."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(echo, folder / "guest.sock")
    (folder / "door.pem").write_text(KEYS.door)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "door.pem")
    address = f"127.0.0.1:{free_port()}"
    services = {"guest": str(folder / "guest.sock"), "rfb": str(folder / "rfb.sock")}
    serving = asyncio.ensure_future(Door(KEYS.secret, services).serve(address, context))
    way = Way(f"door://{address}", f"door://{address}", KEYS.certificate, KEYS.secret)
    try:
        for _ in range(1000):
            try:
                (await asyncio.open_connection(*address.split(":")))[1].close()
                break
            except OSError:
                await asyncio.sleep(0.005)
        yield way
    finally:
        serving.cancel()
        server.close()


async def test_bytes_go_both_ways(tmp_path: Path) -> None:
    async with _door(tmp_path) as way:
        reader, writer = await tunnel.reach(way, "guest")
        sent = bytes(range(256)) * 4096
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
        writer.close()


async def test_who_does_not_know_the_secret_gets_nothing(tmp_path: Path) -> None:
    async with _door(tmp_path) as way:
        with pytest.raises(OSError, match="wrong secret, or nothing behind it"):
            await tunnel.reach(replace(way, secret="x" * 64), "guest")
        with pytest.raises(OSError, match="nothing behind it"):
            await tunnel.reach(way, "rfb")


async def test_another_certificate_is_not_spoken_to(tmp_path: Path) -> None:
    async with _door(tmp_path) as way:
        other = replace(way, certificate=identity.make("test").certificate)
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            await tunnel.reach(other, "guest")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.binary(max_size=700), max_size=6))
def test_nonsense_at_the_door_is_shut_out_and_does_no_harm(
    tmp_path: Path, lines: list[bytes]
) -> None:
    async def knock() -> None:
        async with _door(tmp_path) as way:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(cadata=KEYS.certificate)
            host, _, port = way.guest.removeprefix("door://").partition(":")
            for line in lines:
                reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
                writer.write(line + b"\n")
                assert await reader.read() == b""
                writer.close()
            reader, writer = await tunnel.reach(way, "guest")
            writer.write(b"still here")
            assert await reader.readexactly(10) == b"still here"
            writer.close()

    (tmp_path / "guest.sock").unlink(missing_ok=True)
    asyncio.run(knock())


def test_a_short_secret_opens_no_door(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("short")
    with pytest.raises(DoorProblem, match="32 to 256 characters"):
        secret_in(tmp_path / "secret")
    with pytest.raises(DoorProblem, match="can't read"):
        secret_in(tmp_path / "missing")
