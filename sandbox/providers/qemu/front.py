"""A machine's guest.sock on the host: HTTP whose pictures the host takes, all else goes inside."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from guest.mux import PIECE, Link, LinkBroken, Stream
from sandbox.provider import DesktopLost
from sandbox.providers.qemu.pictures import Screen

_MAX_HEAD = 64 << 10
_MAX_BODY = 64 << 20
_OBSERVE = (b"POST", b"/v1/observe")
THERE = "/v1/bridge"
"""What the bridge answers itself: a socket of one that is being killed still takes connections."""


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request and the length of its body in bytes; after an upgrade it has no end."""

    head: bytes
    method: bytes
    path: bytes
    length: int
    upgrade: bool


class Front:
    """Serves one client after another's socket; `link` and `screen` belong to the machine.

    There is no link until the guest has been told who it is: requests wait for it. A picture of
    `size` in pixels does not.
    """

    def __init__(
        self, link: asyncio.Future[Link], screen: Screen, *, size: tuple[int, int]
    ) -> None:
        self._link = link
        self._screen = screen
        self._size = size

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end; closes it."""
        client = _Client(self._link, self._screen, self._size, reader, writer)
        try:
            await client.serve()
        except (OSError, ValueError, LinkBroken, DesktopLost, asyncio.IncompleteReadError):
            pass  # the client sees its connection close, which it takes for a lost desktop
        finally:
            client.end()


class _Client:
    def __init__(
        self,
        link: asyncio.Future[Link],
        screen: Screen,
        size: tuple[int, int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._link, self._screen, self._size = link, screen, size
        self._reader, self._writer = reader, writer
        self._stream: Stream | None = None
        self._answers: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        while (request := await _request(self._reader)) is not None:
            if (request.method, request.path) == _OBSERVE and request.length <= _MAX_HEAD:
                await self._observe(request, await self._reader.readexactly(request.length))
            elif (request.method, request.path) == (b"GET", THERE.encode()):
                self._writer.write(_answer(b"{}", b""))
                await self._writer.drain()
            else:
                await self._inside(request)

    def end(self) -> None:
        if self._answers is not None:
            self._answers.cancel()
        if self._stream is not None:
            self._stream.reset()
        self._writer.close()

    async def _observe(self, request: Request, body: bytes) -> None:
        """Answer from the emulated screen; elements are asked of the guest, with its own picture."""
        if json.loads(body or b"{}").get("elements"):
            head, answer = await self._whole(request, body)
            self._writer.write(head + answer)
        else:
            header, png = await asyncio.to_thread(self._screen.take)
            if (header["width"], header["height"]) != self._size and not self._link.done():
                await asyncio.shield(self._link)  # a fork still has its template's screen
                header, png = await asyncio.to_thread(self._screen.take)
            self._writer.write(_answer(json.dumps(header).encode(), png))
        await self._writer.drain()

    async def _whole(self, request: Request, body: bytes) -> tuple[bytes, bytes]:
        """Ask the guest over a stream of its own; return (head, body) with our count in `seq`."""
        stream = (await asyncio.shield(self._link)).open("guest")
        try:
            lines = request.head.rstrip(b"\r\n").split(b"\r\n")
            kept = [line for line in lines if not line.lower().startswith(b"connection:")]
            await stream.write(b"\r\n".join([*kept, b"Connection: close", b"", b""]) + body)
            said = bytearray()
            while piece := await stream.read():
                said += piece
                if len(said) > _MAX_BODY:
                    raise ValueError("the guest's observation is too large")
        finally:
            stream.reset()
        head, _, answer = bytes(said).partition(b"\r\n\r\n")
        status = head.split(b"\r\n", 1)[0]
        length = int(_field(head, b"x-header-length") or len(answer))
        header = json.loads(answer[:length])
        if b" 200 " not in status + b" ":
            return b"", _answer(answer[:length], b"", status=status)
        header["seq"] = self._screen.next_seq()
        return b"", _answer(json.dumps(header).encode(), answer[length:])

    async def _inside(self, request: Request) -> None:
        """Pass a request on; its answer comes back by itself."""
        if self._stream is None:
            self._stream = (await asyncio.shield(self._link)).open("guest")
            self._answers = asyncio.ensure_future(self._copy_answers(self._stream))
        await self._stream.write(request.head)
        left = request.length
        while request.upgrade or left:
            piece = await self._reader.read(PIECE if request.upgrade else min(left, PIECE))
            if not piece:
                return self._stream.end()
            left -= len(piece)
            await self._stream.write(piece)

    async def _copy_answers(self, stream: Stream) -> None:
        try:
            while piece := await stream.read():
                self._writer.write(piece)
                await self._writer.drain()
        except (OSError, LinkBroken):
            pass
        finally:
            self._writer.close()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    """Read the head of the next request; None at the end. Raises ValueError if it is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    except asyncio.LimitOverrunError as error:
        raise ValueError("the head of a request is too long") from error
    method, _, rest = head.partition(b" ")
    length = int(_field(head, b"content-length") or 0)
    if not 0 <= length <= _MAX_BODY:
        raise ValueError(f"a request of {length} bytes")
    if _field(head, b"transfer-encoding"):
        raise ValueError("a request must say how long it is")
    upgrade = method == b"CONNECT" or _field(head, b"upgrade") != b""
    return Request(head, method, rest.split(b" ", 1)[0], length, upgrade)


def _field(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _answer(header: bytes, payload: bytes, *, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    kind = b"application/octet-stream" if payload else b"application/json"
    lines = (
        status,
        b"Content-Type: " + kind,
        b"X-Header-Length: " + str(len(header)).encode(),
        b"Content-Length: " + str(len(header) + len(payload)).encode(),
    )
    return b"\r\n".join(lines) + b"\r\n\r\n" + header + payload
