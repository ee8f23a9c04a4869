"""One open screen: the bytes between a browser and a desktop, and who may type into it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from sandbox.logs import about
from sandbox.screen import backend
from sandbox.screen.backend import Backend, DesktopGone
from sandbox.screen.gate import Close, Gate, Grant, Hint, Refused
from sandbox.screen.rfb import (
    INPUT,
    BrowserHandshake,
    ClientMessages,
    Held,
    Pointer,
    ProtocolError,
    decode_input,
    encode_input,
)

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

RECHECK_S = 3.0
"""How often a grant is looked at again when no hint comes."""

HOLD_S = 2.0
"""How long input stays dropped after control was taken away, while the row still grants it."""

PIECE = 1 << 14
"""How much of what a browser sent at once is read before other screens have their turn."""

UNWRITTEN = 1000
"""So many events of a hand are forwarded at most before they are written: nothing piles up."""

SLOW_READER_S = 10.0
"""How long the browser may take none of the bytes that wait for it."""


class Stream:
    """Pumps one socket until it ends; `run` says why, None if the browser left."""

    def __init__(self, grant: Grant, gate: Gate, receive: Receive, send: Send) -> None:
        self.id = secrets.token_hex(8)
        self.grant = grant
        self._gate = gate
        self._receive = receive
        self._send = send
        self._hand = gate.hand(grant) if grant.mode == "control" else None
        self._held = Held()
        self._unwritten = 0
        self._messages = ClientMessages()
        self._typing = False
        self._held_until = 0.0
        self._replaced = False
        self._look_again = asyncio.Event()
        self._sending_since = 0.0
        self._backend: Backend | None = None

    async def run(self) -> Refused | None:
        """Relay until the browser leaves, the desktop goes or the grant ends."""
        try:
            with (
                about(lease=self.grant.lease_id, epoch=self.grant.epoch),
                self._gate.hints(self.grant, self.heard, self.quiet),
            ):
                return await self._open()
        finally:
            self._stop_typing()
            if self._backend is not None:
                self._backend.close()
            if self._hand is not None:
                await self._hand.close()

    def heard(self, hint: Hint) -> None:
        """Act on a hint: taking control away needs no second look, giving it does."""
        if hint.human_control is False:
            self._hold()
        elif hint.human_control:
            self._held_until = 0.0
        if hint.controller and hint.controller != self.id and self.grant.mode == "control":
            self._replaced = True
            self._stop_typing()
        self._look_again.set()

    async def quiet(self) -> None:
        """Take no more input, and return once what came is written."""
        self._hold()
        if self._hand is not None:
            await self._hand.flush()

    async def _open(self) -> Refused | None:
        try:
            self._backend, init = await backend.connect(
                self.grant.rfb_socket, self.grant.rfb_password, self.grant.gateway
            )
            async with asyncio.timeout(backend.HANDSHAKE_S):
                early = await self._shake_hands()
        except DesktopGone as error:
            log.warning("%s", error)
            return Refused(Close.DESKTOP_GONE, "the desktop does not answer")
        except TimeoutError:
            return Refused(Close.PROTOCOL, "the browser did not finish the handshake")
        except ProtocolError as error:
            return Refused(Close.PROTOCOL, str(error))
        if early is None:
            return None
        if init:
            await self._send({"type": "websocket.send", "bytes": init})
        pumps = [
            asyncio.create_task(self._watch()),
            asyncio.create_task(self._to_desktop(self._backend, early)),
            asyncio.create_task(self._to_browser(self._backend)),
        ]
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            return next(pump for pump in pumps if pump in done).result()
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _shake_hands(self) -> bytes | None:
        """Let the browser in; return what it sent ahead, or None if it left."""
        shake = BrowserHandshake()
        await self._send({"type": "websocket.send", "bytes": shake.greeting})
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return None
            reply, rest = shake.feed(message.get("bytes") or b"")
            if reply:
                await self._send({"type": "websocket.send", "bytes": reply})
            if rest is not None:
                return rest

    # -- the two directions --------------------------------------------------------------------------

    async def _to_browser(self, desktop: Backend) -> Refused:
        now = asyncio.get_running_loop().time
        send = self._send
        while data := await desktop.read():
            self._sending_since = now()
            await send({"type": "websocket.send", "bytes": data})
            self._sending_since = 0.0
        return Refused(Close.DESKTOP_GONE, "the desktop has gone")

    async def _to_desktop(self, desktop: Backend, data: bytes) -> Refused | None:
        receive = self._receive
        try:
            while True:
                for start in range(0, len(data), PIECE):
                    if start:
                        await asyncio.sleep(0)
                    await self._forward(desktop, self._messages.feed(data[start : start + PIECE]))
                message = await receive()
                if message["type"] != "websocket.receive":
                    return None
                sent: bytes | None = message.get("bytes")
                if sent is None:
                    return Refused(Close.PROTOCOL, "a text frame; RFB is binary")
                data = sent
        except ProtocolError as error:
            log.warning("%s", error)
            return Refused(Close.PROTOCOL, str(error))

    async def _forward(self, desktop: Backend, messages: list[bytes]) -> None:
        out: list[bytes] = []
        for message in messages:
            if message[0] not in INPUT:
                out.append(message)
            elif self._typing:
                await self._forward_input(desktop, message, out)
        if out:
            desktop.write(out[0] if len(out) == 1 else b"".join(out))
        await desktop.drain()

    async def _forward_input(self, desktop: Backend, message: bytes, out: list[bytes]) -> None:
        event = decode_input(message)
        if event is None:
            out.append(message)
            return
        pressed = self._held.pressed(event) if isinstance(event, Pointer) else 0
        hand = self._hand
        if hand is not None and hand.wants_frame(event, pressed):
            # The picture must show the screen that the hand saw: everything before the press is
            # on its way, the press is not.
            desktop.write(b"".join(out))
            out.clear()
            await hand.take_frame()
            if not self._typing:
                return
        self._held.apply(event)
        out.append(message)
        if hand is not None:
            hand.add(event, pressed)
            self._unwritten += 1
            if self._unwritten >= UNWRITTEN:
                self._unwritten = 0
                # What was let through goes before anything that a change of hands lets go of.
                desktop.write(b"".join(out))
                out.clear()
                await hand.flush()

    # -- who may type --------------------------------------------------------------------------------

    async def _watch(self) -> Refused:
        """Look at the grant now, at every hint and every RECHECK_S; return once it has ended."""
        loop = asyncio.get_running_loop()
        while True:
            self._look_again.clear()
            if self._replaced:
                return Refused(Close.LEASE_OVER, "opened in another window")
            since = self._sending_since
            if since and loop.time() - since > SLOW_READER_S:
                return Refused(Close.SLOW_READER, "the browser reads too slowly")
            standing = await self._gate.look(self.grant)
            if isinstance(standing, Refused):
                return standing
            if self._look_again.is_set():
                continue  # a hint came while the row was read: the answer may be the old one
            may_type = standing.human_control and self.grant.mode == "control"
            if not may_type or loop.time() < self._held_until:
                self._stop_typing()
            elif not self._typing:
                self._typing = True
                if self._hand is not None:
                    self._hand.begin()
            with suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_S):
                    await self._look_again.wait()

    def _hold(self) -> None:
        """Believe at once that control is taken away, though the row may not say so yet."""
        self._held_until = asyncio.get_running_loop().time() + HOLD_S
        self._stop_typing()

    def _stop_typing(self) -> None:
        """Drop input from here on, and let go of what is still down."""
        self._typing = False
        for event in self._held.let_go():
            if self._backend is not None:
                self._backend.write(encode_input(event))
            if self._hand is not None:
                self._hand.add(event, 0)


class Relay:
    """The ASGI websocket application: lets a browser in by its ticket and keeps the limits.

    One controller per lease, the newest, in every process; `viewers` more per lease and process.
    """

    def __init__(self, gate: Gate, *, viewers: int = 3) -> None:
        self._gate = gate
        self._viewers = viewers
        self._streams: dict[int, list[Stream]] = {}
        backend.keep_memory()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return
        if not same_origin(scope["headers"]):
            # Refused before the handshake: a foreign page learns nothing.
            await send({"type": "websocket.close", "code": int(Close.FORBIDDEN)})
            return
        answer = await redeemed(self._gate, scope.get("subprotocols", []))
        await send({"type": "websocket.accept", "subprotocol": "binary"})
        end = answer if isinstance(answer, Refused) else await self._admit(answer, receive, send)
        if end is not None:
            # uvicorn waits until the browser has room; one that reads nothing gets no reason.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(2):
                    await send(
                        {
                            "type": "websocket.close",
                            "code": int(end.code),
                            "reason": end.reason,
                        }
                    )

    async def _admit(self, grant: Grant, receive: Receive, send: Send) -> Refused | None:
        others = self._streams.setdefault(grant.lease_id, [])
        stream = Stream(grant, self._gate, receive, send)
        if grant.mode == "control":
            for other in others:
                other.heard(Hint(controller=stream.id))
        elif sum(other.grant.mode == "view" for other in others) >= self._viewers:
            return Refused(Close.TOO_MANY_VIEWERS, f"{self._viewers} people watch already")
        others.append(stream)
        try:
            if grant.mode == "control":
                await self._gate.announce(grant, stream.id)
            return await stream.run()
        except OSError:
            return None  # the browser's connection broke while something was sent
        finally:
            others.remove(stream)
            if not others:
                self._streams.pop(grant.lease_id, None)


async def redeemed(gate: Gate, subprotocols: list[str]) -> Grant | Refused:
    """Use up the ticket that a browser offers among its subprotocols."""
    tokens = [name[7:] for name in subprotocols if name.startswith("ticket.")]
    if "binary" not in subprotocols or len(tokens) != 1:
        return Refused(Close.NO_TICKET, "no ticket")
    return await gate.redeem(tokens[0])


def same_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the page that opens the socket came from this host; False without an Origin."""
    found = {name.lower(): value.decode("latin-1").lower() for name, value in headers}
    scheme, separator, host = found.get(b"origin", "").partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme)
    if not separator or default is None or not host:
        return False
    return host.removesuffix(default) == found.get(b"host", "").removesuffix(default)
