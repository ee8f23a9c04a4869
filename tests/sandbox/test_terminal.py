"""The terminal's socket: tickets, who may type, coming back, and what a hostile guest can't do."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from sandbox.commands import Commands
from sandbox.provider import Desktop, Handle, SandboxSpec
from sandbox.providers.fake import FakeProvider
from sandbox.screen.gate import Close, Command, Grant, Hint, Refused
from sandbox.terminal import TerminalRelay
from tests.sandbox.relays import MemoryGate, serving
from tests.sandbox.screens import until

SIZE = {"columns": 90, "rows": 20}


@pytest.fixture
def handle() -> Iterator[Handle]:
    provider = FakeProvider()
    handle = provider.start(SandboxSpec("terminal"))
    provider.connect(handle).fence(1)  # the epoch of MemoryGate's grants
    yield handle
    provider.stop(handle)


@pytest.fixture
def gate() -> MemoryGate:
    gate = MemoryGate(Path("no-screen"))
    gate.control = True
    return gate


@pytest.fixture
async def port(gate: MemoryGate, handle: Handle) -> AsyncIterator[int]:
    def desktop(grant: Grant) -> Desktop:
        return FakeProvider().connect(handle)

    async with serving(TerminalRelay(gate, desktop)) as port:
        yield port


def dial(port: int, token: str, *, origin: str = "") -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/ws/terminal/",
        subprotocols=["binary", f"ticket.{token}"],  # type: ignore[list-item]
        origin=origin or f"http://127.0.0.1:{port}",  # type: ignore[arg-type]
    )


async def wish(socket: ClientConnection, **more: Any) -> None:
    await socket.send(json.dumps({"terminal": "", "offset": 0, **SIZE, **more}))


async def hear(socket: ClientConnection, what: bytes) -> tuple[bytes, dict[str, Any]]:
    """Read until `what` was shown; return all that was, and the newest words about it."""
    shown, said = b"", dict[str, Any]()
    async with asyncio.timeout(60):
        while what not in shown or not said:
            message = await socket.recv()
            if isinstance(message, bytes):
                shown += message
                said = {}
            else:
                said = json.loads(message)
    return shown, said


async def refusal(socket: ClientConnection) -> tuple[int, str]:
    async with asyncio.timeout(60):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            return closed.rcvd.code, closed.rcvd.reason


async def test_a_shell_answers_and_is_resized(port: int, gate: MemoryGate) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(b"stty size; echo $((40+2))done\n")
        shown, _ = await hear(socket, b"42done")
        assert b"20 90" in shown
        await socket.send(json.dumps({"columns": 50, "rows": 10}))
        await socket.send(b"stty size; echo $((41+2))done\n")
        assert b"10 50" in (await hear(socket, b"43done"))[0]
        await socket.send(b"exit 3\n")
        async with asyncio.timeout(60):
            texts = [message async for message in socket if isinstance(message, str)]
        assert json.loads(texts[-1]) == {"exit": 3}


async def test_a_page_comes_back_where_it_was(port: int, gate: MemoryGate) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(b"x=kept; echo $((40+2))done\n")
        _, said = await hear(socket, b"42done")
    async with dial(port, gate.ticket()) as socket:
        await wish(socket, **said)
        await socket.send(b"echo $x$((44+2))\n")
        shown, _ = await hear(socket, b"kept46")
        assert b"42done" not in shown


async def test_only_who_controls_may_open_one(port: int, gate: MemoryGate) -> None:
    async with dial(port, "nonsense") as socket:
        assert (await refusal(socket))[0] == Close.NO_TICKET
    token = gate.ticket()
    async with dial(port, token) as socket:
        await wish(socket)
        async with dial(port, token) as again:
            assert (await refusal(again))[0] == Close.NO_TICKET
    async with dial(port, gate.ticket("view")) as socket:
        assert (await refusal(socket))[0] == Close.FORBIDDEN
    gate.control = False
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        assert await refusal(socket) == (Close.FORBIDDEN, "take over first: the agent has control")
    with pytest.raises(Exception, match="403"):
        async with dial(port, gate.ticket(), origin="http://evil.example"):
            pass


async def test_input_is_dropped_once_control_is_gone(port: int, gate: MemoryGate) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(b"echo $((40+2))done\n")
        await hear(socket, b"42done")
        gate.control = False
        gate.hint(Hint(human_control=False))
        for quiet in list(gate.quiet):
            await quiet()
        await socket.send(b"echo $((41+2))done\n")
        await (await socket.ping())
        for _ in range(50):  # the server, on this very loop, takes the message from its queue
            await asyncio.sleep(0)
        gate.control = True
        gate.hint(Hint(human_control=True))
        async with asyncio.timeout(60):
            # Typing works again a moment after; what was typed meanwhile never happened.
            shown = b""
            while b"46again" not in shown:
                await socket.send(b"echo $((44+2))again\n")
                shown += (await hear(socket, b"again"))[0]
        assert b"43done" not in shown


async def test_the_end_of_the_lease_ends_it(port: int, gate: MemoryGate) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await until(lambda: gate.heard)
        gate.end = Refused(Close.LEASE_OVER, "the lease is over")
        gate.hint(Hint())
        assert await refusal(socket) == (Close.LEASE_OVER, "the lease is over")


async def test_a_stale_epoch_opens_nothing(port: int, gate: MemoryGate, handle: Handle) -> None:
    FakeProvider().connect(handle).fence(2)
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        assert (await refusal(socket))[0] == Close.LEASE_OVER


@pytest.mark.parametrize(
    "first",
    [
        "{}",
        "[]",
        "nonsense",
        '{"terminal": 5}',
        '{"columns": "x", "rows": 1}',
        b"bytes",
        "[" * 5000,
    ],
)
async def test_a_page_that_talks_nonsense_is_let_go(
    port: int, gate: MemoryGate, first: str | bytes
) -> None:
    async with dial(port, gate.ticket()) as socket:
        await socket.send(first)
        assert (await refusal(socket))[0] == Close.PROTOCOL


async def test_what_a_program_says_stays_on_the_screen(port: int, gate: MemoryGate) -> None:
    hostile = r"\033]0;title\007\033]52;c;ZXZpbA==\007\033]8;;http://evil\033\\link\033[6n\033[c"
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(f"printf '{hostile}'; echo $((40+2))done\n".encode())
        shown, _ = await hear(socket, b"42done")
    said = shown.rpartition(b"done")[0]
    for escape in (b"\x1b]", b"\x1b[6n", b"\x1b[c", b"\x1bP"):
        assert escape not in said
    assert b"link" in said


async def test_endless_output_reaches_the_page_and_can_be_stopped(
    port: int, gate: MemoryGate
) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(b"yes\n")
        _, said = await hear(socket, b"y\r\ny\r\n" * 1000)
        assert said["offset"] > 5000
        await socket.send(b"\x03")
        async with asyncio.timeout(60):
            shown = b""
            while b"42done" not in shown:
                await socket.send(b"echo $((40+2))done\n")
                shown = (await hear(socket, b"done"))[0]


async def test_command_lines_of_a_hand_are_kept_and_passwords_are_not(
    port: int, gate: MemoryGate
) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(b"echo  'a b' | tr a-z A-Z\r")
        await hear(socket, b"A B")
        await socket.send(b"mkdir -p deep; cd deep\r")
        await socket.send(b" read -s -p 'Pass''word: ' it; echo got-${#it}\r")
        await hear(socket, b"Password: ")
        await socket.send(b"geheim\r")
        await hear(socket, b"got-6")
        await socket.send(b"\x1b[A\x1b[A\r")  # an earlier line out of the history
        await until(lambda: len(gate.camera.rows) == 4, 30)
        await socket.send(b"never\x03")
        await hear(socket, b"^C")
        # A program that says what bash says; only as often as Enter was pressed can it count.
        forged = "for i in 1 2 3; do printf '\\e]7770;%s\\a' ZXZpbA==; done"
        await socket.send(f"{forged}; echo en''d\r".encode())
        await hear(socket, b"end")
    await until(lambda: len(gate.camera.rows) >= 5, 30)
    said = [row.event.text for row in gate.camera.rows if isinstance(row.event, Command)]
    assert said[0] == "echo  'a b' | tr a-z A-Z"
    assert said[1] == "mkdir -p deep; cd deep"
    assert said[2].startswith("cd ") and said[2].endswith("it; echo got-${#it}")
    assert said[3].endswith("mkdir -p deep; cd deep")
    assert said[4].endswith("echo en''d")
    assert said[5:] in ([], ["evil"])  # there was one Enter of which the shell told nothing
    assert not any("geheim" in text or "never" in text for text in said)
    assert gate.camera.rows[0].observation is not None


async def test_what_was_entered_last_is_kept_when_control_goes_back(
    port: int, gate: MemoryGate
) -> None:
    async with dial(port, gate.ticket()) as socket:
        await wish(socket)
        await socket.send(b"sleep 30\r")
        await hear(socket, b"sleep")
        await gate.quiet[0]()
        assert [row.event for row in gate.camera.rows] == [Command("sleep 30")]


def test_a_told_command_is_found_however_it_is_cut() -> None:
    said = b"x\x1b]7770;" + base64.b64encode("echo é\0".encode()) + b"\x07y"
    for at in range(len(said)):
        commands = Commands()
        assert commands.feed(said[:at]) + commands.feed(said[at:]) == ["echo é"]
    endless = Commands()
    for _ in range(100):
        assert endless.feed(b"\x1b]7770;" + b"A" * 10_000) == []
    assert len(endless._held) <= 13_000
    assert endless.feed(b"\x07" + said) == ["echo é"]
