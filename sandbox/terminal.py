"""A terminal in the computer beside its screen: the same tickets, the same rules, another socket.

Bytes are the terminal's, in both directions; text frames are JSON. The page begins with
{"terminal": "" or an id, "offset", "columns", "rows"} and may send {"columns", "rows"} later; it is
told {"terminal", "offset"} after every piece, so that it can go on after a break, and {"exit"}.

Of what a hand types, the command lines are kept that the computer's shell says it was given, one for
each Enter at most: not what programs are told, so no password that one asks for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sandbox.capabilities import Terminals
from sandbox.commands import Commands
from sandbox.escapes import Escapes
from sandbox.provider import ActionFailed, Desktop, SandboxError, StaleLease
from sandbox.screen.gate import Close, Command, Gate, Grant, Hint, Refused
from sandbox.screen.stream import HOLD_S, RECHECK_S, Message, Receive, Send, redeemed, same_origin

log = logging.getLogger(__name__)

MAX_OPEN = 24
MAX_INPUT = 64 * 1024
_FIRST_S = 10.0
_WAIT_MS = 1000
_BREATH_S = 0.05
_MOST_ENTERED = 200
_TOLD_WITHIN_S = 1.0
"""How long the shell may take to say which command it was given before control is handed back."""

T = TypeVar("T")
Connect = Callable[[Grant], Desktop]


@dataclass(frozen=True, slots=True)
class _Wish:
    """Which terminal a page wants: a new one if `terminal` is "", else that one from `offset` on."""

    terminal: str
    offset: int
    columns: int
    rows: int


class TerminalRelay:
    """The ASGI websocket application. `connect` returns a grant's desktop; it may block."""

    def __init__(self, gate: Gate, connect: Connect) -> None:
        self._gate = gate
        self._connect = connect
        self._open = 0
        # A reader waits in a thread for what its terminal says; another one types.
        self._threads = ThreadPoolExecutor(2 * MAX_OPEN, thread_name_prefix="terminal")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return
        if not same_origin(scope["headers"]):
            await send({"type": "websocket.close", "code": int(Close.FORBIDDEN)})
            return
        answer = await redeemed(self._gate, scope.get("subprotocols", []))
        await send({"type": "websocket.accept", "subprotocol": "binary"})
        end = answer if isinstance(answer, Refused) else await self._admit(answer, receive, send)
        if end is not None:
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(2):
                    code, reason = int(end.code), end.reason[:120]
                    await send({"type": "websocket.close", "code": code, "reason": reason})

    async def _admit(self, grant: Grant, receive: Receive, send: Send) -> Refused | None:
        if grant.mode != "control":
            return Refused(Close.FORBIDDEN, "a terminal is for whoever controls the computer")
        if self._open >= MAX_OPEN:
            return Refused(Close.TOO_MANY_VIEWERS, f"{MAX_OPEN} terminals are open here already")
        self._open += 1
        try:
            return await _Stream(self._gate, grant, receive, send, self._threads).run(self._connect)
        except OSError:
            return None  # the browser's connection broke while something was sent
        finally:
            self._open -= 1


class _Stream:
    def __init__(
        self, gate: Gate, grant: Grant, receive: Receive, send: Send, threads: ThreadPoolExecutor
    ) -> None:
        self._gate = gate
        self._grant = grant
        self._receive = receive
        self._send = send
        self._threads = threads
        self._typing = False
        self._held_until = 0.0
        self._look_again = asyncio.Event()
        self._writing = asyncio.Lock()
        self._hand = gate.hand(grant)
        self._entered = 0  # how often Enter was pressed since the shell last told of a command
        self._told = asyncio.Event()

    async def run(self, connect: Connect) -> Refused | None:
        """Relay until the page leaves, the program or the grant ends; return why."""
        try:
            async with asyncio.timeout(_FIRST_S):
                wish = _wish(await self._receive())
            standing = await self._gate.look(self._grant)
            if isinstance(standing, Refused):
                return standing
            if not standing.human_control:
                return Refused(Close.FORBIDDEN, "take over first: the agent has control")
            desktop = await self._in_thread(lambda: connect(self._grant))
            try:
                if not isinstance(desktop, Terminals):
                    return Refused(Close.FORBIDDEN, "this kind of computer has no terminals")
                return await self._relay(desktop, wish)
            finally:
                await self._in_thread(desktop.close)
        except TimeoutError:
            return Refused(Close.PROTOCOL, "the page did not say what it wants")
        except _Nonsense as error:
            return Refused(Close.PROTOCOL, str(error))
        except StaleLease:
            return Refused(Close.LEASE_OVER, "the lease is over")
        except ActionFailed as error:
            return Refused(Close.FORBIDDEN, str(error))
        except SandboxError as error:
            log.warning("lease %s: its terminal: %s", self._grant.lease_id, error)
            return Refused(Close.DESKTOP_GONE, "the desktop does not answer")
        finally:
            if self._hand is not None:
                await self._hand.close()

    async def _relay(self, desktop: Terminals, wish: _Wish) -> Refused | None:
        terminal = wish.terminal or await self._in_thread(
            lambda: desktop.open_terminal(
                epoch=self._grant.epoch,
                columns=wish.columns,
                rows=wish.rows,
                action_id=uuid.uuid4().hex,
            )
        )
        with self._gate.hints(self._grant, self._heard, self._quiet):
            pumps = [
                asyncio.create_task(self._watch()),
                asyncio.create_task(self._to_page(desktop, terminal, wish.offset)),
                asyncio.create_task(self._to_terminal(desktop, terminal)),
            ]
            try:
                done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                return next(pump for pump in pumps if pump in done).result()
            finally:
                self._typing = False
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)

    async def _to_page(self, desktop: Terminals, terminal: str, offset: int) -> None:
        escapes, commands = Escapes(), Commands()
        while True:
            output = await self._in_thread(
                partial(desktop.read_terminal, terminal, offset=offset, wait_ms=_WAIT_MS)
            )
            offset = output.offset
            if output.data:
                self._keep(commands.feed(output.data))
                began = time.monotonic()
                shown = await self._in_thread(partial(escapes.feed, output.data))
                took = time.monotonic() - began
                await self._send({"type": "websocket.send", "bytes": shown})
                await self._say(terminal=terminal, offset=offset)
                # Output without end gets no more than half of our time.
                await asyncio.sleep(took)
            else:
                await asyncio.sleep(_BREATH_S)  # a guest that does not wait as it was asked to
            if output.exit_code is not None:
                await self._say(exit=output.exit_code)
                return await self._send({"type": "websocket.close", "code": 1000})

    async def _to_terminal(self, desktop: Terminals, terminal: str) -> Refused | None:
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return None
            if (text := message.get("text")) is not None:
                columns, rows = _size(_object(text))
                if self._typing:
                    await self._in_thread(
                        partial(
                            desktop.resize_terminal,
                            terminal,
                            columns=columns,
                            rows=rows,
                            epoch=self._grant.epoch,
                        )
                    )
                continue
            data = message.get("bytes") or b""
            if len(data) > MAX_INPUT:
                return Refused(Close.PROTOCOL, f"more than {MAX_INPUT} bytes at once")
            async with self._writing:
                if self._typing and data:
                    await self._enters(data)
                    await self._in_thread(
                        partial(
                            desktop.write_terminal,
                            terminal,
                            data,
                            epoch=self._grant.epoch,
                            action_id=uuid.uuid4().hex,
                        )
                    )

    async def _enters(self, data: bytes) -> None:
        """Note what may become a command, and take the picture that its step shows."""
        presses = data.count(b"\r") + data.count(b"\n")
        if presses and self._hand is not None:
            await self._hand.take_frame()
            self._entered = min(self._entered + presses, _MOST_ENTERED)
            self._told.clear()

    def _keep(self, commands: list[str]) -> None:
        """Keep command lines that somebody has entered here; others are the guest's invention."""
        for command in commands[: self._entered]:
            if self._hand is not None:
                self._hand.add(Command(command), 0)
        if commands:
            self._entered = max(0, self._entered - len(commands))
            self._told.set()

    async def _watch(self) -> Refused:
        """Look at the grant now, at every hint and every RECHECK_S; return once it has ended."""
        now = asyncio.get_running_loop().time
        while True:
            self._look_again.clear()
            standing = await self._gate.look(self._grant)
            if isinstance(standing, Refused):
                return standing
            if self._look_again.is_set():
                continue  # a hint came while the row was read: the answer may be the old one
            may_type = standing.human_control and now() >= self._held_until
            if may_type and not self._typing and self._hand is not None:
                self._hand.begin()
            self._typing = may_type
            with suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_S):
                    await self._look_again.wait()

    def _heard(self, hint: Hint) -> None:
        if hint.human_control is False:
            self._hold()
        elif hint.human_control:
            self._held_until = 0.0
        self._look_again.set()

    async def _quiet(self) -> None:
        """Take no more input, and return once what came is entered."""
        self._hold()
        async with self._writing:
            pass
        if self._entered:
            with suppress(TimeoutError):
                async with asyncio.timeout(_TOLD_WITHIN_S):
                    await self._told.wait()
        self._entered = 0
        if self._hand is not None:
            await self._hand.flush()

    def _hold(self) -> None:
        self._held_until = asyncio.get_running_loop().time() + HOLD_S
        self._typing = False

    async def _say(self, **what: object) -> None:
        await self._send({"type": "websocket.send", "text": json.dumps(what)})

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Nonsense(Exception):
    """The page said something that is not of the protocol."""


def _wish(message: Message) -> _Wish:
    said = _object(message.get("text") or "")
    terminal, offset = said.get("terminal", ""), said.get("offset", 0)
    if not isinstance(terminal, str) or len(terminal) > 64:
        raise _Nonsense("terminal must be an id")
    if not isinstance(offset, int) or not 0 <= offset < 2**53:
        raise _Nonsense("offset must be a number")
    return _Wish(terminal, offset, *_size(said))


def _size(said: dict[str, Any]) -> tuple[int, int]:
    columns, rows = said.get("columns"), said.get("rows")
    if not isinstance(columns, int) or not isinstance(rows, int):
        raise _Nonsense("columns and rows must be numbers")
    return max(1, min(columns, 1000)), max(1, min(rows, 1000))


def _object(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text[:1000])
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise _Nonsense("a text frame must be a JSON object")
    return said
