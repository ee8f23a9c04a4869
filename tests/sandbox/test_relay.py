"""The relay without a database: what passes, what does not, and when a socket is closed."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from sandbox.screen.capture import Captured
from sandbox.screen.gate import Close, Hint, Refused
from sandbox.screen.rfb import MAX_HELD, Key, Pointer, encode_input
from sandbox.screen.stream import UNWRITTEN, Relay, same_origin
from tests.sandbox.relays import MemoryGate, serving
from tests.sandbox.screens import HEIGHT, WIDTH, recorder, until, viewer, xvnc

UPDATE = struct.pack(">BBHHHH", 3, 0, 0, 0, WIDTH, HEIGHT)
RAW_ONLY = struct.pack(">BxHi", 2, 1, 0)
CUT = struct.pack(">BxxxI", 6, 5) + b"paste"
RESIZE = struct.pack(">BxHHBx", 251, 640, 480, 0)
CLICK = encode_input(Pointer(5, 6, 1))
LET_GO = encode_input(Pointer(5, 6, 0))


Desk = tuple[int, MemoryGate, bytearray]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A relay in front of a desktop that records: (port, gate, bytes that arrived)."""
    async with recorder(tmp_path) as (socket, got):
        gate = MemoryGate(socket)
        async with serving(Relay(gate)) as port:
            yield port, gate, got


async def test_pixels_of_a_real_desktop_arrive(tmp_path: Path) -> None:
    with xvnc(tmp_path) as socket:
        gate = MemoryGate(socket)
        async with serving(Relay(gate)) as port, viewer(port, gate.ticket("view")) as screen:
            assert await screen.shake_hands() == (WIDTH, HEIGHT)
            await screen.send(RAW_ONLY + UPDATE)
            kind, rectangles = struct.unpack(">BxH", await screen.read(4))
            assert kind == 0 and rectangles >= 1
            _x, _y, width, height, encoding = struct.unpack(">HHHHi", await screen.read(12))
            assert encoding == 0
            assert len(await screen.read(4 * width * height)) == 4 * width * height


async def test_a_hand_types_into_a_real_desktop(tmp_path: Path) -> None:
    from Xlib.display import Display

    with xvnc(tmp_path) as socket:
        gate = MemoryGate(socket)
        display = Display((tmp_path / "display").read_text())

        def pointer() -> tuple[int, int]:
            place = display.screen().root.query_pointer()
            return place.root_x, place.root_y

        async with serving(Relay(gate)) as port, viewer(port, gate.ticket()) as screen:
            await screen.shake_hands()
            await screen.send(encode_input(Pointer(11, 12, 0)) + UPDATE)
            await screen.read(4)  # the answer to what came after it
            assert pointer() != (11, 12)  # a viewer only, so far
            await gate.give(True)
            await screen.send(encode_input(Pointer(21, 22, 0)))
            await until(lambda: pointer() == (21, 22))
        display.close()


async def test_view_only_drops_input_byte_for_byte(desk: Desk) -> None:
    port, gate, got = desk
    gate.control = True  # somebody has control; this ticket is for looking
    async with viewer(port, gate.ticket("view")) as screen:
        await screen.shake_hands()
        scan = encode_input(Key(97, True, 30))
        await screen.send(RAW_ONLY + CLICK + UPDATE + scan + CUT + encode_input(Key(97, True)))
        await screen.send(RESIZE[:3])
        await screen.send(RESIZE[3:] + UPDATE)
        await until(lambda: len(got) >= len(RAW_ONLY + UPDATE + UPDATE))
        assert got == RAW_ONLY + UPDATE + UPDATE


async def test_a_controller_types_only_while_it_has_control(desk: Desk) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await screen.send(CLICK + UPDATE)
        await until(lambda: bytes(got) == UPDATE)
        await gate.give(True)
        await screen.send(CLICK + CUT + UPDATE)
        await until(lambda: bytes(got) == UPDATE + CLICK + CUT + UPDATE)


async def test_what_is_down_is_let_go_when_control_goes(desk: Desk) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        press = encode_input(Key(0xFFE1, True)) + CLICK
        await screen.send(press)
        await until(lambda: bytes(got) == press)
        await gate.give(False)
        await until(lambda: bytes(got) == press + encode_input(Key(0xFFE1, False)) + LET_GO)
        await screen.send(encode_input(Key(97, True)) + UPDATE)
        await until(lambda: got.endswith(UPDATE))
        assert encode_input(Key(97, True)) not in bytes(got)


async def test_taking_control_away_is_believed_before_the_row_says_so(desk: Desk) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        await screen.send(encode_input(Key(97, True)))
        await until(lambda: len(got) == 8)
        await gate.quiet[0]()  # the row still says True
        assert [row.event for row in gate.camera.rows] == [Key(97, True), Key(97, False)]
        await screen.send(encode_input(Key(98, True)) + UPDATE)
        await until(lambda: got.endswith(UPDATE))
        assert bytes(got) == encode_input(Key(97, True)) + encode_input(Key(97, False)) + UPDATE


async def test_what_is_down_is_let_go_when_the_browser_leaves(desk: Desk) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        await screen.send(CLICK)
        await until(lambda: bytes(got) == CLICK)
    await until(lambda: bytes(got) == CLICK + LET_GO)
    await until(lambda: [r.event for r in gate.camera.rows] == [Pointer(5, 6, 1), Pointer(5, 6, 0)])


async def test_the_picture_is_taken_before_the_press_is_forwarded(desk: Desk) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        seen: list[bytes] = []

        async def look() -> None:
            seen.append(bytes(got))

        gate.camera.before = look
        move = encode_input(Pointer(5, 6, 0))
        await screen.send(encode_input(Pointer(1, 1, 0)) + move + CLICK + LET_GO)
        await until(lambda: got.endswith(CLICK + LET_GO))
        assert all(CLICK not in what for what in seen) and len(seen) == 1
        await until(lambda: len(gate.camera.rows) == 3)
        assert [row.event for row in gate.camera.rows] == [
            Pointer(5, 6, 0),  # of the moves only the last before the press
            Pointer(5, 6, 1),
            Pointer(5, 6, 0),
        ]
        frames = [row.frame for row in gate.camera.rows]
        assert frames == ["", "sha-2", ""]
        stamps = [row.at for row in gate.camera.rows]
        assert stamps == sorted(stamps)


async def test_a_flood_of_input_is_written_as_it_comes_and_not_piled_up(desk: Desk) -> None:
    port, gate, got = desk
    sizes: list[int] = []
    store = gate.camera.store

    async def counted(batch: list[Captured]) -> None:
        sizes.append(len(batch))
        await store(batch)

    gate.camera.store = counted  # type: ignore[method-assign]
    taps = (encode_input(Key(97, True)) + encode_input(Key(97, False))) * (3 * UNWRITTEN)
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        await screen.send(taps + UPDATE)
        await until(lambda: got.endswith(UPDATE))
        assert bytes(got) == taps + UPDATE
        await until(lambda: sum(sizes) == 6 * UNWRITTEN)
        assert max(sizes) <= UNWRITTEN
        keys = [encode_input(Key(keysym, True)) for keysym in range(1, MAX_HELD + 2)]
        await screen.send(b"".join(keys))
        code, reason = await screen.closed()
        assert (code, "keys down" in reason) == (Close.PROTOCOL, True)


async def test_a_late_picture_holds_nobody_up(desk: Desk) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        never = asyncio.Event()

        async def wait() -> None:
            await never.wait()

        gate.camera.before = wait
        await screen.send(CLICK + LET_GO)
        await until(lambda: bytes(got) == CLICK + LET_GO)
        await until(lambda: len(gate.camera.rows) == 2)
        press = gate.camera.rows[0]
        assert press.frame == ""  # marked: the picture is the one before
        assert press.observation == {"screenshot": "sha-1"}


async def test_a_ticket_is_wanted_and_used_once(desk: Desk, caplog: Any) -> None:
    port, gate, _ = desk
    caplog.set_level(logging.INFO)
    token = gate.ticket()
    async with viewer(port, token) as screen:
        await screen.shake_hands()
        async with viewer(port, token) as second:
            assert (await second.closed())[0] == Close.NO_TICKET
    assert caplog.text and token not in caplog.text


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null", "https://127.0.0.1"])
async def test_a_foreign_origin_is_refused(desk: Desk, origin: str | None) -> None:
    port, gate, _ = desk
    token = gate.ticket()
    with pytest.raises(InvalidStatus, match="403"):
        async with viewer(port, token, origin=origin):
            pass
    assert token in gate.tickets  # not even looked at


def test_same_origin_knows_default_ports() -> None:
    def ask(origin: bytes, host: bytes) -> bool:
        return same_origin([(b"host", host), (b"origin", origin)])

    assert ask(b"https://desk.example", b"desk.example:443")
    assert ask(b"http://Desk.example:80", b"desk.example")
    assert not ask(b"https://desk.example:80", b"desk.example:443")
    assert not ask(b"file://desk.example", b"desk.example")
    assert not ask(b"", b"") and not same_origin([(b"host", b"desk.example")])


async def test_a_second_controller_takes_the_first_ones_place(desk: Desk) -> None:
    port, gate, _ = desk
    async with viewer(port, gate.ticket()) as first:
        await first.shake_hands()
        async with viewer(port, gate.ticket()) as second:
            await second.shake_hands()
            code, reason = await first.closed()
            assert code == Close.LEASE_OVER and "another window" in reason
            async with viewer(port, gate.ticket(lease_id=8)) as other:
                await other.shake_hands()  # another lease is nobody's business
            await second.send(UPDATE)
            await until(lambda: desk[2].endswith(UPDATE))


async def test_a_controller_in_another_process_takes_the_place_too(desk: Desk) -> None:
    port, gate, _ = desk
    async with viewer(port, gate.ticket()) as screen, viewer(port, gate.ticket("view")) as watcher:
        await screen.shake_hands()
        await watcher.shake_hands()
        gate.hint(Hint(controller=gate.announced))  # its own announcement comes back to it
        gate.hint(Hint(controller="of another process"))
        assert (await screen.closed())[0] == Close.LEASE_OVER
        await watcher.send(UPDATE)
        await until(lambda: desk[2].endswith(UPDATE))


async def test_three_may_watch(desk: Desk) -> None:
    port, gate, _ = desk
    async with (
        viewer(port, gate.ticket("view")) as a,
        viewer(port, gate.ticket("view")) as b,
        viewer(port, gate.ticket("view")) as c,
        viewer(port, gate.ticket("control")) as hand,
    ):
        for screen in (a, b, c, hand):
            await screen.shake_hands()
        async with viewer(port, gate.ticket("view")) as fourth:
            assert (await fourth.closed())[0] == Close.TOO_MANY_VIEWERS


async def test_a_hint_closes_the_socket_of_a_lease_that_is_over(desk: Desk) -> None:
    port, gate, _ = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        gate.end = Refused(Close.LEASE_OVER, "the lease is over")
        gate.hint(Hint())
        assert await screen.closed() == (Close.LEASE_OVER, "the lease is over")


async def test_a_desktop_that_is_gone_is_named(tmp_path: Path) -> None:
    gate = MemoryGate(tmp_path / "nothing.sock")
    async with serving(Relay(gate)) as port, viewer(port, gate.ticket()) as screen:
        assert (await screen.closed())[0] == Close.DESKTOP_GONE


@pytest.mark.parametrize("data", [b"\x63", struct.pack(">Bxxxi", 6, 2**30), b"\xff\x09"])
async def test_nonsense_closes_the_socket_and_nothing_of_it_arrives(
    desk: Desk, data: bytes
) -> None:
    port, gate, got = desk
    async with viewer(port, gate.ticket()) as screen:
        await screen.shake_hands()
        await gate.give(True)
        await screen.send(data)
        assert (await screen.closed())[0] == Close.PROTOCOL
    assert got == b""


async def test_a_slow_reader_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.screen.stream.SLOW_READER_S", 0.2)
    monkeypatch.setattr("sandbox.screen.stream.RECHECK_S", 0.1)
    ends: list[Refused | None] = []
    left = asyncio.Event()

    async def desktop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"RFB 003.008\n\x01\x01")
        await reader.readexactly(13)
        writer.write(bytes(4) + struct.pack(">HH16xI", 1, 1, 0))
        try:
            while True:
                writer.write(bytes(1 << 16))
                await writer.drain()
        except OSError:
            left.set()

    server = await asyncio.start_unix_server(desktop, tmp_path / "flood.sock")
    gate = MemoryGate(tmp_path / "flood.sock")
    relay = Relay(gate)
    sent = 0
    stuck = asyncio.Event()
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    for message in (b"RFB 003.008\n", b"\x01", b"\x01"):
        inbox.put_nowait({"type": "websocket.receive", "bytes": message})

    async def send(message: Any) -> None:
        nonlocal sent
        if message["type"] == "websocket.close":
            ends.append(Refused(Close(message["code"]), message["reason"]))
        sent += len(message.get("bytes") or b"")
        if sent > 1 << 20 and message["type"] == "websocket.send":
            await stuck.wait()

    async def receive() -> dict[str, Any]:
        return await inbox.get()

    scope = {
        "type": "websocket",
        "headers": [(b"host", b"here"), (b"origin", b"http://here")],
        "subprotocols": ["binary", f"ticket.{gate.ticket('view')}"],
    }
    inbox._queue.appendleft({"type": "websocket.connect"})  # type: ignore[attr-defined]
    await asyncio.wait_for(relay(scope, receive, send), 60)
    assert ends and ends[0] is not None and ends[0].code == Close.SLOW_READER
    await asyncio.wait_for(left.wait(), 60)
    assert sent < 8 << 20  # what waited for the browser was bounded
    server.close()
