"""A desktop whose guest has taken the RFB server over: whatever it says, the relay and the next screen live."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.screen import rfb
from sandbox.screen.gate import Close
from sandbox.screen.rfb import DesktopHandshake, ProtocolError
from sandbox.screen.stream import Relay
from tests.sandbox.relays import MemoryGate, serving
from tests.sandbox.screens import HEIGHT, WIDTH, recorder, viewer

INIT = struct.pack(">HH16xI", WIDTH, HEIGHT, 4) + b"desk"
LET_IN = rfb.VERSION + b"\x01\x01" + bytes(4)


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_any_handshake_ends_with_a_result_or_a_named_error(pieces: Sequence[bytes]) -> None:
    shake, sent, got = DesktopHandshake("secret"), 0, 0
    try:
        for piece in pieces:
            got += len(piece)
            reply, rest = shake.feed(piece)
            sent += len(reply)
            if rest is not None:
                assert len(rest) <= got
                break
    except ProtocolError as error:
        assert len(str(error)) < 1200 and str(error).isprintable()
    assert sent <= 12 + 1 + 16 + 1


@asynccontextmanager
async def saying(folder: Path, data: bytes) -> AsyncIterator[Path]:
    """Run a desktop that says `data` to whoever comes, reads all and then hangs up."""
    socket = folder / "hostile.sock"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(data)
            await writer.drain()
            writer.write_eof()
            while await reader.read(65536):
                pass
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, socket)
    try:
        yield socket
    finally:
        server.close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        rfb.VERSION + b"\x00" + struct.pack(">I", 2**31) + b"\x1b]0;owned\x07" * 50,
        rfb.VERSION + b"\xff" + bytes(range(3, 250)),
        rfb.VERSION + b"\x01\x02" + bytes(16) + b"\xff" * 4,
    ],
    ids=["nothing", "http", "a refusal with escapes", "no way in", "the password is wrong"],
)
async def test_a_bad_handshake_closes_one_screen_and_says_so_in_plain_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    caplog.set_level(logging.WARNING)
    async with saying(tmp_path, data) as socket, recorder(tmp_path) as (well, _):
        gate = MemoryGate(socket)
        async with serving(Relay(gate)) as port:
            async with viewer(port, gate.ticket("view")) as screen:
                assert (await screen.closed())[0] == Close.DESKTOP_GONE
            gate._socket = str(well)
            async with viewer(port, gate.ticket("view")) as screen:
                assert await screen.shake_hands() == (WIDTH, HEIGHT)
    assert "\x1b" not in caplog.text and all(len(r.message) < 1500 for r in caplog.records)


@pytest.mark.parametrize(
    "after",
    [
        bytes(1 << 20),
        b"\xff" * (1 << 20),
        struct.pack(">BxxxI", 3, 2**32 - 1) + b"clipboard" * 1000,
        struct.pack(">BxH", 0, 65535) + struct.pack(">HHHHi", 0, 0, 65535, 65535, 0),
    ],
    ids=["zeros", "ones", "a giant clipboard", "a giant rectangle"],
)
async def test_what_a_desktop_says_later_only_passes_through(tmp_path: Path, after: bytes) -> None:
    """The relay never looks into it: what it costs is bounded by its buffers, not by what it says."""
    async with saying(tmp_path, LET_IN + INIT + after) as socket:
        gate = MemoryGate(socket)
        async with serving(Relay(gate)) as port, viewer(port, gate.ticket("view")) as screen:
            assert await screen.shake_hands() == (WIDTH, HEIGHT)
            assert await screen.read(len(after)) == after
            assert (await screen.closed())[0] == Close.DESKTOP_GONE
