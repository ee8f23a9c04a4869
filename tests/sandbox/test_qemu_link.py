"""The way into a machine without a machine: the link's two sides joined, the host's HTTP front."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guest.errors import StaleLease
from guest.fencing import Gate
from guest.mux import (
    ANSWER,
    DATA,
    MAGIC,
    MAX_STREAMS,
    NONCE_BYTES,
    WINDOW,
    Link,
    LinkBroken,
    Stream,
    splice,
)
from sandbox.provider import DesktopLost
from sandbox.providers.qemu import accel, process
from sandbox.providers.qemu.bridge import Bridge
from sandbox.providers.qemu.front import Front
from sandbox.providers.qemu.pictures import Screen
from sandbox.providers.qemu.qmp import Monitor, QmpError

NONCE = b"n" * NONCE_BYTES


class Pair:
    """A host's and a guest's link; what one writes the other gets in pieces of `cut` bytes."""

    def __init__(self, opened=None, asked=None, cut: int = 1 << 20) -> None:
        self.cut = cut
        self.host = Link(lambda data: self._carry(self.guest, data), self._drain)
        self.guest = Link(
            lambda data: self._carry(self.host, data), self._drain, opened=opened, asked=asked
        )

    def _carry(self, to: Link, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        for start in range(0, len(data), self.cut):
            loop.call_soon(to.feed, data[start : start + self.cut])

    async def _drain(self) -> None:
        await asyncio.sleep(0)


async def echo(stream: Stream) -> None:
    while data := await stream.read():
        await stream.write(data)
    stream.end()


def echoing(cut: int = 1 << 20) -> Pair:
    tasks = set()

    def opened(stream: Stream, service: str) -> None:
        task = asyncio.ensure_future(echo(stream))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return Pair(opened, cut=cut)


async def sent(link: Link, payload: bytes) -> bytes:
    stream = link.open("echo")
    back = bytearray()

    async def receive() -> None:
        while data := await stream.read():
            back.extend(data)

    receiving = asyncio.ensure_future(receive())
    await stream.write(payload)
    stream.end()
    async with asyncio.timeout(10):
        await receiving
    return bytes(back)


@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
async def test_streams_carry_bytes_both_ways_whatever_the_pieces(cut: int) -> None:
    pair = echoing(cut)
    await pair.host.greet(NONCE)
    payloads = [bytes([n]) * (3000 * n + 1) for n in range(4)]
    assert await asyncio.gather(*(sent(pair.host, p) for p in payloads)) == payloads
    assert pair.host.streams == {} == pair.guest.streams


async def test_more_than_a_window_goes_through_while_another_stream_stands_still() -> None:
    pair = echoing()
    await pair.host.greet(NONCE)
    still = pair.host.open("echo")
    writing = asyncio.ensure_future(still.write(bytes(4 * WINDOW)))  # nobody reads its echo
    payload = bytes(range(256)) * (3 * WINDOW // 256)
    assert await sent(pair.host, payload) == payload
    assert not writing.done()
    still.reset()
    with pytest.raises(LinkBroken):
        await writing


async def test_a_new_greeting_counts_for_nothing_what_was_under_way() -> None:
    pair = echoing()
    await pair.host.greet(NONCE)
    stream = pair.host.open("echo")
    await stream.write(b"x")
    pair.guest.feed(b"\x02\x00\x01\x00\x00")  # the first half of a frame whose rest never comes
    await pair.host.greet(b"m" * NONCE_BYTES)
    with pytest.raises(LinkBroken):
        await stream.read()
    assert await sent(pair.host, b"after") == b"after"


async def test_a_host_hears_nothing_before_its_own_greeting_comes_back() -> None:
    heard: list[bytes] = []
    host = Link(heard.append, lambda: asyncio.sleep(0))
    greeting = asyncio.ensure_future(host.greet(NONCE))
    await asyncio.sleep(0)
    host.feed(b"what a restored machine still had to send" + MAGIC + b"o" * NONCE_BYTES)
    assert not greeting.done()
    host.feed(MAGIC[:5])
    host.feed(MAGIC[5:] + NONCE)
    await asyncio.wait_for(greeting, 5)


async def test_an_answer_comes_back() -> None:
    pair = Pair(asked=lambda question: pair.guest.send(ANSWER, 0, question.upper()))
    await pair.host.greet(NONCE)
    assert await pair.host.ask(b"who") == b"WHO"


@pytest.mark.parametrize(
    "frame",
    [
        b"\x02\x00\x01\xff\xff\xff\xff",  # a frame of 4 GiB
        b"\x01\x00\x09\x00\x00\x00\x00",  # a stream that the guest opens
        b"\x06\x00\x00\x00\x00\x00\x01x",  # a request of the guest
        b"\x63\x00\x00\x00\x00\x00\x00",  # no kind of frame
    ],
)
async def test_a_guest_that_breaks_the_rules_breaks_only_its_link(frame: bytes) -> None:
    pair = echoing()
    await pair.host.greet(NONCE)
    with pytest.raises(LinkBroken):
        pair.host.feed(frame)


async def test_a_guest_cannot_send_more_than_the_window() -> None:
    pair = Pair(opened=lambda stream, service: None)
    await pair.host.greet(NONCE)
    stream = pair.host.open("guest")
    piece = bytes(WINDOW // 8)
    with pytest.raises(LinkBroken, match="window"):
        for _ in range(9):
            stream.received(DATA, piece)


async def test_connections_are_counted() -> None:
    pair = Pair(opened=lambda stream, service: None)
    await pair.host.greet(NONCE)
    for _ in range(MAX_STREAMS):
        pair.host.open("guest")
    with pytest.raises(LinkBroken, match="128"):
        pair.host.open("guest")


@given(st.lists(st.binary(max_size=200), max_size=20))
@settings(deadline=None)
def test_noise_from_a_guest_is_refused_or_ignored(pieces: list[bytes]) -> None:
    async def feed() -> None:
        pair = echoing()
        await pair.host.greet(NONCE)
        try:
            for piece in pieces:
                pair.host.feed(piece)
        except LinkBroken:
            pass
        assert sum(len(p) for p in pieces) + 200 > len(pair.host._buffer)

    asyncio.run(feed())


def test_what_was_forked_or_restored_belongs_to_nobody() -> None:
    gate, released = Gate(), []
    gate.raise_to(5, released=lambda: None)
    gate.start_over(released=lambda: released.append(gate.epoch))
    assert (gate.epoch, released) == (0, [0])
    with pytest.raises(StaleLease):
        gate.check(5)


class Pictures(Screen):
    """A screen that shows one fixed picture."""

    def __init__(self) -> None:
        self.seq = 0

    def take(self) -> tuple[dict[str, object], bytes]:
        self.seq += 1
        return {"seq": self.seq, "width": 4, "height": 3}, b"PNG"

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq


async def test_the_host_takes_pictures_and_passes_the_rest_on(tmp_path: Path) -> None:
    inside: list[bytes] = []

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.split(b"ength: ")[1].split(b"\r\n")[0])
            inside.append(head.split(b" ")[1] + b" " + await reader.readexactly(length))
            body = json.dumps({"seq": 99, "elements": []}).encode()
            size = f"X-Header-Length: {len(body)}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + size.encode() + body)
            if b"close" in head:
                return writer.close()

    server = await asyncio.start_unix_server(guest, str(tmp_path / "guest.sock"))
    tasks = set()

    def opened(stream: Stream, service: str) -> None:
        async def carry() -> None:
            await splice(stream, *await asyncio.open_unix_connection(str(tmp_path / "guest.sock")))

        task = asyncio.ensure_future(carry())
        tasks.add(task)

    pair = Pair(opened)
    renewed: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
    front = Front(renewed, Pictures(), size=(4, 3))
    served = await asyncio.start_unix_server(front.serve, str(tmp_path / "front.sock"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "front.sock"))

    async def ask(path: str, body: bytes) -> dict[str, object]:
        writer.write(f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(10):
            head = await reader.readuntil(b"\r\n\r\n")
            answer = await reader.readexactly(int(head.split(b"t-Length: ")[1].split(b"\r\n")[0]))
        return json.JSONDecoder().raw_decode(answer.decode())[0]

    assert (await ask("/v1/observe", b"{}"))["seq"] == 1
    await pair.host.greet(NONCE)
    entering = asyncio.ensure_future(ask("/v1/epoch", b'{"epoch": 0}'))
    assert (await asyncio.wait({entering}, timeout=0.05))[1] and inside == []  # not before its time
    renewed.set_result(pair.host)
    await entering
    assert (await ask("/v1/epoch", b'{"epoch": 1}'))["seq"] == 99
    assert (await ask("/v1/observe", b'{"elements": true}'))["seq"] == 2  # our count, its elements
    assert (await ask("/v1/observe", b'{"elements": false}'))["seq"] == 3
    assert inside[1:] == [b'/v1/epoch {"epoch": 1}', b'/v1/observe {"elements": true}']
    writer.write(b"POST /v1/epoch HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    async with asyncio.timeout(10):
        assert await reader.read() == b""  # it does not say how long it is
    writer.close()
    served.close()
    server.close()


# -- QEMU's own protocol, and which way a machine's processor runs --------------------------------


async def test_a_monitor_tells_errors_from_answers_and_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "qmp.sock"

    async def qemu(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"QMP": {}}\n')
        while line := await reader.readline():
            command = json.loads(line)["execute"]
            if command == "silence":
                continue
            event = b'{"event": "RESUME", "data": {}}\n'
            bad = b'{"error": {"class": "GenericError", "desc": "no such thing"}}\n'
            writer.write(event + (bad if command == "bad" else b'{"return": {"a": 1}}\n'))

    server = await asyncio.start_unix_server(qemu, str(path))

    def talk() -> None:
        with Monitor(path, timeout_s=0.5) as monitor:
            assert monitor.run("good") == {"a": 1}
            with pytest.raises(QmpError, match="no such thing"):
                monitor.run("bad")
            with pytest.raises(DesktopLost, match=r"0\.5 s"):
                monitor.run("silence")

    await asyncio.to_thread(talk)
    server.close()
    with pytest.raises(DesktopLost, match="does not listen"):
        await asyncio.to_thread(Monitor, tmp_path / "none.sock", timeout_s=0.05)


def test_a_kvm_that_boots_nothing_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that opens is no proof: the answer is that of a boot, kept for this host's boot."""
    (tmp_path / "dev").touch()
    monkeypatch.setattr(accel, "_DEVICE", tmp_path / "dev")
    asked = []

    def boots(kernel: Path, kind: accel.Accel, *, seconds: float) -> bool:
        asked.append(kind.kind)
        return False

    monkeypatch.setattr(accel, "boots", boots)
    chosen = [accel.choose(tmp_path / "kernel", tmp_path) for _ in range(2)]
    assert (chosen, asked) == ([accel.TCG, accel.TCG], ["kvm"])
    assert "no KVM" in accel.TCG.limits
    monkeypatch.setattr(accel, "_DEVICE", tmp_path / "missing")
    assert accel.choose(tmp_path / "kernel", tmp_path / "elsewhere") is accel.TCG


def test_two_starts_may_ask_for_the_first_time_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dev").touch()
    monkeypatch.setattr(accel, "_DEVICE", tmp_path / "dev")
    monkeypatch.setattr(accel, "boots", lambda kernel, kind, *, seconds: True)
    both, replace = threading.Barrier(2, timeout=60), Path.replace

    def together(part: Path, known: Path) -> Path:
        both.wait()
        return replace(part, known)

    monkeypatch.setattr(Path, "replace", together)
    with ThreadPoolExecutor(2) as starts:
        asked = [starts.submit(accel.choose, tmp_path / "kernel", tmp_path) for _ in range(2)]
        assert [one.result() for one in asked] == [accel.KVM, accel.KVM]


def test_a_screen_that_was_let_go_of_touches_no_descriptor(tmp_path: Path) -> None:
    screen = Screen(tmp_path, started_at=0)
    for _ in range(2):
        screen.close()
    with pytest.raises(DesktopLost, match="let go"):
        screen.take()


async def test_a_machine_that_does_not_open_leaves_no_descriptor(tmp_path: Path) -> None:
    """A bridge serves for weeks: what a failed start has opened is closed when it is cleared."""
    folder = tmp_path / "machines" / "one"
    (folder / "run").mkdir(parents=True)
    process.write(folder, process.About(4, 3, "", 64, []))
    bridge = Bridge(tmp_path)
    before = _screens()
    for _ in range(3):
        with pytest.raises(DesktopLost, match="no machine behind"):
            await bridge._do({"do": "open", "name": "one", "renewal": {}})
        await bridge._do({"do": "close", "name": "one"})
    assert _screens() == before


def _screens() -> int:
    """Return how many descriptors of screens this process has."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was that of the listing
            found += "memfd:screen" in os.readlink(entry)
    return found
