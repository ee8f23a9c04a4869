"""The desktop's end of the relay: its RFB socket, with back-pressure both ways."""

from __future__ import annotations

import asyncio
import ctypes
from collections import deque
from itertools import islice
from typing import cast

from sandbox import dial
from sandbox.provider import SandboxError
from sandbox.screen.rfb import DesktopHandshake, ProtocolError

HIGH_WATER = 1 << 20
"""Bytes from the desktop that may wait for the browser before reading stops."""

LOW_WATER = 1 << 19
JOIN_UP_TO = 1 << 16
READ_UP_TO = 1 << 16
"""What is read at once: small enough to stay in the processor's cache on its way through."""

HANDSHAKE_S = 10.0


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEEP_BYTES = 64 << 20


def keep_memory() -> None:
    """Let this process keep up to KEEP_BYTES of freed memory; does nothing without glibc.

    By default glibc gives the top of the heap back after nearly every piece of a stream and faults
    it in again for the next: about 90 page faults per MB.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, KEEP_BYTES)
        mallopt(_M_MMAP_THRESHOLD, 8 * READ_UP_TO)


class DesktopGone(Exception):
    """Nothing answers on the desktop's RFB socket, or it answers nonsense; the message says which."""


class Backend(asyncio.BufferedProtocol):
    """One connection to a desktop. Bytes wait here until `read` takes all of them at once."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._buffer = memoryview(bytearray(READ_UP_TO))
        self._paused = False
        self._closed = False
        self._reader: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None

    # -- called by the transport -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._chunks.append(bytes(self._buffer[:nbytes]))
        self._size += nbytes
        if self._size >= HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        _wake(self._reader)
        _wake(self._writable)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._writable)
        self._writable = None

    # -- called by the stream ------------------------------------------------------------------------

    async def read(self) -> bytes:
        """Return what has come, waiting for something; b"" once the desktop is gone.

        Small pieces come together; big ones come alone, for joining them costs more than a frame.
        """
        if not self._chunks and not self._closed:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = self._take()
        self._size -= len(data)
        if self._paused and self._size < LOW_WATER and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def _take(self) -> bytes:
        if not self._chunks:
            return b""
        count, size = 1, len(self._chunks[0])
        for chunk in islice(self._chunks, 1, None):
            size += len(chunk)
            if size > JOIN_UP_TO:
                break
            count += 1
        if count == 1:
            return self._chunks.popleft()
        return b"".join([self._chunks.popleft() for _ in range(count)])

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._closed:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the desktop has taken enough of what was written."""
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(
    path: str, password: str, gateway: dial.Gateway | None = None
) -> tuple[Backend, bytes]:
    """Open the desktop's RFB socket and log in; the bytes are the start of its ServerInit.

    Raises DesktopGone.
    """
    backend = Backend()
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            await dial.connect(backend, path, "rfb", gateway)
            shake = DesktopHandshake(password)
            while True:
                data = await backend.read()
                if not data:
                    raise DesktopGone("the desktop hung up in the handshake")
                reply, rest = shake.feed(data)
                backend.write(reply)
                if rest is not None:
                    return backend, rest
    except (OSError, TimeoutError, ProtocolError, SandboxError, DesktopGone) as error:
        backend.close()
        raise DesktopGone(f"no RFB connection to the desktop: {error}") from error


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
