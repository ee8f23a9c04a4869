"""One WebSocket of a browser, joined to the same of a service."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpcore
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, ProtocolError, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from sandbox.preview.entry import Pass
from sandbox.preview.pages import Message, Receive, Send
from sandbox.preview.pools import Ports
from sandbox.provider import SandboxError

MAX_MESSAGE = 16 << 20
OPEN_S = 10.0
_READ = 1 << 16
_BAD_GATEWAY, _GOING_AWAY, _TOO_BIG = 1011, 1001, 1009


class NoSocket(Exception):
    """The service has no WebSocket there; the message says what it answered."""


class Socket:
    """The service's end; messages come and go whole."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, protocol: ClientProtocol) -> None:
        self._stream, self._protocol = stream, protocol
        self._pieces: list[bytes] = []
        self._text = False
        self._writing = asyncio.Lock()

    @classmethod
    async def open(cls, holder: Pass, scope: Message) -> Socket:
        """Connect and shake hands; raises NoSocket, SandboxError, httpcore's errors."""
        local = f"localhost:{holder.place.port}"
        query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        path = (scope.get("raw_path") or b"/").decode("latin-1")
        protocol = ClientProtocol(
            parse_uri(f"ws://{local}{path}{query}"),
            origin=f"http://{local}",  # type: ignore[arg-type]
            subprotocols=scope.get("subprotocols") or None,
            max_size=MAX_MESSAGE,
        )
        stream = await Ports(holder).connect_tcp("localhost", holder.place.port, OPEN_S)
        socket = cls(stream, protocol)
        try:
            protocol.send_request(protocol.connect())
            await socket._flush()
            while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
                await socket._feed()
            if protocol.handshake_exc is not None:
                raise NoSocket(str(protocol.handshake_exc))
        except (InvalidHandshake, ProtocolError) as error:
            await socket.close()
            raise NoSocket(str(error)) from error
        except BaseException:
            await socket.close()
            raise
        return socket

    @property
    def subprotocol(self) -> str | None:
        return self._protocol.subprotocol

    async def messages_to(self, send: Send) -> int:
        """Pass messages on until the service closes; return the code to close with."""
        while True:
            for event in self._protocol.events_received():
                if isinstance(event, Response):
                    continue
                assert isinstance(event, Frame)
                if event.opcode is Opcode.CLOSE:
                    return self._code()
                await self._pass(event, send)
            if self._protocol.state is not State.OPEN:
                return self._code()
            await self._feed()

    async def say(self, message: Message) -> None:
        """Send one message of the browser's."""
        text, data = message.get("text"), message.get("bytes")
        if text is not None:
            self._protocol.send_text(text.encode())
        else:
            self._protocol.send_binary(data or b"")
        await self._flush()

    async def close(self) -> None:
        with suppress(Exception):
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(_GOING_AWAY)
                await self._flush()
        await self._stream.aclose()

    async def _pass(self, frame: Frame, send: Send) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._pieces, self._text = [], frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._pieces.append(bytes(frame.data))
        if frame.fin:
            whole = b"".join(self._pieces)
            self._pieces = []
            if self._text:
                await send({"type": "websocket.send", "text": whole.decode()})
            else:
                await send({"type": "websocket.send", "bytes": whole})

    async def _feed(self) -> None:
        data = await self._stream.read(_READ)
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        await self._flush()

    async def _flush(self) -> None:
        async with self._writing:
            for data in self._protocol.data_to_send():
                if data:
                    await self._stream.write(data)

    def _code(self) -> int:
        code = self._protocol.close_code or _GOING_AWAY
        # 1005 and 1006 only say that there was no code; they may not be sent.
        return _GOING_AWAY if code in (1004, 1005, 1006, 1015) else code


async def join(holder: Pass, scope: Message, receive: Receive, send: Send) -> None:
    """Open the service's WebSocket, let the browser in, and copy until either side leaves."""
    try:
        async with asyncio.timeout(OPEN_S):
            socket = await Socket.open(holder, scope)
    except (NoSocket, SandboxError, TimeoutError, OSError, httpcore.NetworkError):
        return await send({"type": "websocket.close", "code": _BAD_GATEWAY})
    code = _GOING_AWAY
    try:
        await send({"type": "websocket.accept", "subprotocol": socket.subprotocol})
        ways = [
            asyncio.create_task(socket.messages_to(send)),
            asyncio.create_task(_from_browser(socket, receive)),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            # Also what the browser says to a service that is closing already.
            with suppress(UnicodeDecodeError, httpcore.NetworkError, WebSocketException):
                code = next(iter(done)).result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
    finally:
        await socket.close()
    with suppress(OSError, RuntimeError):  # the browser has gone already
        await send({"type": "websocket.close", "code": code})


async def _from_browser(socket: Socket, receive: Receive) -> int:
    while (message := await receive())["type"] == "websocket.receive":
        if len(message.get("bytes") or message.get("text") or "") > MAX_MESSAGE:
            return _TOO_BIG
        await socket.say(message)
    return _GOING_AWAY
