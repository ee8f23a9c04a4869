"""What the relay's tests have in common: a real Xvnc, a desktop that records, and a viewer."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from sandbox.screen import rfb
from sandbox.screen.des import vnc_response

PASSWORD = "secret"
WIDTH, HEIGHT = 320, 200


@contextmanager
def xvnc(folder: Path) -> Iterator[Path]:
    """Run a real Xvnc with a password; yield its RFB socket. DISPLAY is left in `folder`/display."""
    socket, passwd = folder / "rfb.sock", folder / "passwd"
    hashed = subprocess.run(
        ["vncpasswd", "-f"], input=PASSWORD.encode(), capture_output=True, check=True
    )
    passwd.write_bytes(hashed.stdout)
    read, write = os.pipe()
    command = [
        "Xvnc", "-displayfd", str(write), "-geometry", f"{WIDTH}x{HEIGHT}", "-depth", "24",
        "-rfbport", "-1", "-rfbunixpath", str(socket), "-rfbunixmode", "0600", "-AlwaysShared",
        "-SecurityTypes", "VncAuth", "-PasswordFile", str(passwd), "-nolisten", "tcp",
        "-AcceptSetDesktopSize=0",
    ]  # fmt: skip
    with open(folder / "xvnc.log", "wb") as log:
        process = subprocess.Popen(command, pass_fds=[write], stdout=log, stderr=log)
    os.close(write)
    try:
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
            assert number, (folder / "xvnc.log").read_text()
            (folder / "display").write_text(f":{number}")
            yield socket
    finally:
        process.terminate()
        process.wait(60)


@asynccontextmanager
async def recorder(folder: Path) -> AsyncIterator[tuple[Path, bytearray]]:
    """Run a desktop that does the handshake and then records every byte it gets."""
    socket, got = folder / "desk.sock", bytearray()
    challenge = bytes(range(16))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(rfb.VERSION)
        assert await reader.readexactly(12) == rfb.VERSION
        writer.write(b"\x01\x02" + challenge)
        assert await reader.readexactly(1) == b"\x02"
        assert await reader.readexactly(16) == vnc_response(PASSWORD, challenge)
        writer.write(bytes(4))
        assert await reader.readexactly(1) == b"\x01"
        writer.write(struct.pack(">HH16xI", WIDTH, HEIGHT, 4) + b"desk")
        while data := await reader.read(65536):
            got.extend(data)
        writer.close()

    server = await asyncio.start_unix_server(serve, socket)
    try:
        yield socket, got
    finally:
        server.close()


async def until(condition: object, deadline_s: float = 60) -> None:
    """Wait until `condition()` holds."""
    assert callable(condition)
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.01)


class Viewer:
    """A browser's side of the socket: bytes in order, whatever the frames."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._buffer = b""

    async def read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self.socket.recv()
            assert isinstance(data, bytes)
            self._buffer += data
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    async def send(self, data: bytes) -> None:
        await self.socket.send(data)

    async def shake_hands(self) -> tuple[int, int]:
        """Do the handshake as noVNC does; return the desktop's size."""
        assert await self.read(12) == rfb.VERSION
        await self.send(rfb.VERSION)
        assert await self.read(2) == b"\x01\x01"
        await self.send(b"\x01")
        assert await self.read(4) == bytes(4)
        await self.send(b"\x01")
        width, height, name = struct.unpack(">HH16xI", await self.read(24))
        await self.read(name)
        return width, height

    async def closed(self) -> tuple[int, str]:
        """Wait until the relay closes; return its code and reason."""
        await asyncio.wait_for(self.socket.wait_closed(), 60)
        return self.socket.close_code or 0, self.socket.close_reason or ""


@asynccontextmanager
async def viewer(port: int, token: str, *, origin: str | None = "same") -> AsyncIterator[Viewer]:
    """Open the relay's socket as a page of this origin would."""
    async with connect(
        f"ws://127.0.0.1:{port}/ws/desktop/",
        subprotocols=["binary", f"ticket.{token}"],  # type: ignore[list-item]
        origin=f"http://127.0.0.1:{port}" if origin == "same" else origin,  # type: ignore[arg-type]
        compression=None,
        max_size=None,
        proxy=None,
    ) as socket:
        yield Viewer(socket)
