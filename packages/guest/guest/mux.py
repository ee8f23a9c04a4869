"""Many connections over one serial port: frames of streams, each with a window of its own.

A link starts, and starts again, with MAGIC and a nonce: whatever came before on the port (half a
frame of a host that died, what a restored machine thought it still had to send) counts for nothing.
After it come frames: kind, stream (0 is the link's own), length, payload. Only the host opens streams.
The other side is never trusted: a frame or a window too large breaks the link.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable

MAGIC = bytes.fromhex("f7544e44eb01c4a79d11fe8ac3b0d55a")
NONCE_BYTES = 16
WINDOW = 256 << 10
"""Bytes of one stream that may be under way in one direction."""

PIECE = 32 << 10
MAX_STREAMS = 128
_HEADER = struct.Struct(">BHI")
_MAX_JSON = 64 << 10

OPEN, DATA, END, RESET, CREDIT, ASK, ANSWER = range(1, 8)


class LinkBroken(Exception):
    """The other side broke the rules of the link, or it is gone."""


class Stream:
    """One connection; `read` and `write` wait for the other side."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.number = number
        self._credit = WINDOW
        self._waiting: list[bytes] = []
        self._unread = 0
        self._ended = False
        self._done = False
        self._lost = False
        self._changed = asyncio.Event()

    async def read(self) -> bytes:
        """Return what has come, b"" at the end; raises LinkBroken if the stream was reset."""
        while not self._waiting:
            if self._lost:
                raise LinkBroken("the stream was reset")
            if self._ended:
                return b""
            await self._wait()
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._unread -= len(data)
        self._link.send(CREDIT, self.number, len(data).to_bytes(4, "big"))
        return data

    async def write(self, data: bytes) -> None:
        """Send `data` as the other side makes room; raises LinkBroken."""
        view = memoryview(data)
        while view:
            while self._credit == 0 and not self._lost:
                await self._wait()
            if self._lost:
                raise LinkBroken("the stream was reset")
            size = min(len(view), self._credit, PIECE)
            self._credit -= size
            self._link.send(DATA, self.number, bytes(view[:size]))
            view = view[size:]
            await self._link.drain()

    def end(self) -> None:
        """Say that nothing more comes from here."""
        if not (self._done or self._lost):
            self._done = True
            self._link.send(END, self.number)
            self._forget()

    def reset(self) -> None:
        """Give the stream up on both sides; fine if it has ended."""
        if not self._lost and not (self._done and self._ended):
            self._link.send(RESET, self.number)
        self.lose()

    def lose(self) -> None:
        """The other side is gone: whoever waits is told."""
        self._lost = True
        self._link.streams.pop(self.number, None)
        self._changed.set()

    def received(self, kind: int, payload: bytes) -> None:
        if kind == DATA:
            self._unread += len(payload)
            if self._unread > WINDOW or self._ended:
                raise LinkBroken("more bytes than the window allows")
            self._waiting.append(payload)
        elif kind == END:
            self._ended = True
            self._forget()
        elif kind == CREDIT:
            self._credit = min(WINDOW, self._credit + int.from_bytes(payload[:4], "big"))
        self._changed.set()

    def _forget(self) -> None:
        if self._done and self._ended:
            self._link.streams.pop(self.number, None)

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Link:
    """One side of the port: `feed` it what arrives, it sends by `write`.

    `opened(stream, service)` is called for a stream that the other side opens, `asked(json)` for
    its requests; a side that gives neither refuses them.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        drain: Callable[[], Awaitable[None]],
        *,
        opened: Callable[[Stream, str], None] | None = None,
        asked: Callable[[bytes], None] | None = None,
    ) -> None:
        self._write = write
        self.drain = drain
        self._opened = opened
        self._asked = asked
        self.streams: dict[int, Stream] = {}
        self._next = 0
        self._buffer = bytearray()
        self._tail = b""
        self._nonce = b""
        self._greeted: asyncio.Future[None] | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._synced = False

    # -- the host's side -------------------------------------------------------------------

    async def greet(self, nonce: bytes) -> None:
        """Begin anew and return when the other side has answered; all streams are lost."""
        self._lose_all()
        self._synced = False
        self._nonce = nonce
        self._greeted = asyncio.get_running_loop().create_future()
        self._write(MAGIC + nonce)
        await self._greeted

    async def ask(self, question: bytes) -> bytes:
        """Send a request of at most 64 KiB and return its answer; one at a time."""
        self._answer = asyncio.get_running_loop().create_future()
        self.send(ASK, 0, question)
        return await self._answer

    def open(self, service: str) -> Stream:
        """Open a stream to `service`; a service that isn't there resets it."""
        if len(self.streams) >= MAX_STREAMS:
            raise LinkBroken(f"a machine carries {MAX_STREAMS} connections at once, not more")
        while True:
            self._next = self._next % 0xFFFF + 1
            if self._next not in self.streams:
                break
        stream = self.streams[self._next] = Stream(self, self._next)
        self.send(OPEN, stream.number, service.encode())
        return stream

    # -- both --------------------------------------------------------------------------------

    def send(self, kind: int, stream: int, payload: bytes = b"") -> None:
        self._write(_HEADER.pack(kind, stream, len(payload)) + payload)

    def feed(self, data: bytes) -> None:
        """Take what the port gave; raises LinkBroken if it makes no sense."""
        seen = self._tail + data
        begin = seen.rfind(MAGIC)
        if begin >= 0 and len(seen) >= begin + len(MAGIC) + NONCE_BYTES:
            end = begin + len(MAGIC) + NONCE_BYTES
            self._restart(seen[begin + len(MAGIC) : end])
            self._tail, self._buffer = b"", bytearray(seen[end:])
        else:
            self._tail = seen[-(len(MAGIC) + NONCE_BYTES - 1) :]
            if self._synced:
                self._buffer += data
        if self._synced:
            self._parse()

    def lose(self) -> None:
        """The port is gone: every stream and whoever waits for an answer is told."""
        self._synced = False
        self._lose_all()
        for waiting in (self._greeted, self._answer):
            if waiting is not None and not waiting.done():
                waiting.set_exception(LinkBroken("the port was closed"))
                waiting.exception()  # it may be that nobody waits any more

    def _restart(self, nonce: bytes) -> None:
        if self._greeted is None:  # the guest's side: repeat the nonce
            self._lose_all()
            self._write(MAGIC + nonce)
            self._synced = True
        elif nonce == self._nonce:
            self._synced = True
            if not self._greeted.done():
                self._greeted.set_result(None)

    def _parse(self) -> None:
        while len(self._buffer) >= _HEADER.size:
            kind, number, length = _HEADER.unpack_from(self._buffer)
            if length > (_MAX_JSON if kind in (ASK, ANSWER) else PIECE):
                raise LinkBroken(f"a frame of {length} bytes")
            if len(self._buffer) < _HEADER.size + length:
                return
            payload = bytes(self._buffer[_HEADER.size : _HEADER.size + length])
            del self._buffer[: _HEADER.size + length]
            self._take(kind, number, payload)

    def _take(self, kind: int, number: int, payload: bytes) -> None:
        if kind == OPEN:
            self._accept(number, payload)
        elif kind == ASK:
            if self._asked is None:
                raise LinkBroken("a request from the wrong side")
            self._asked(payload)
        elif kind == ANSWER:
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(payload)
        elif kind == RESET:
            if number in self.streams:
                self.streams[number].lose()
        elif kind in (DATA, END, CREDIT):
            if number in self.streams:  # else it is late: we gave that stream up
                self.streams[number].received(kind, payload)
        else:
            raise LinkBroken(f"a frame of kind {kind}")

    def _accept(self, number: int, payload: bytes) -> None:
        if self._opened is None or number in self.streams or len(payload) > 64:
            raise LinkBroken("a stream from the wrong side")
        stream = self.streams[number] = Stream(self, number)
        if len(self.streams) > MAX_STREAMS:
            return stream.reset()
        self._opened(stream, payload.decode(errors="replace"))

    def _lose_all(self) -> None:
        for stream in list(self.streams.values()):
            stream.lose()


async def splice(
    stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Copy both ways until both ends are done or one is lost; closes the socket and the stream."""

    async def outward() -> None:
        while data := await reader.read(PIECE):
            await stream.write(data)
        stream.end()

    async def inward() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    tasks = [asyncio.ensure_future(outward()), asyncio.ensure_future(inward())]
    try:
        await asyncio.gather(*tasks)
    except (OSError, LinkBroken):
        pass
    finally:
        for task in tasks:
            task.cancel()
        stream.reset()
        writer.close()
