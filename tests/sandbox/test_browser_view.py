"""A browser page as a sandbox: what a viewer sees through the relay, and what a hand does there."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import signal
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import async_playwright

from sandbox.provider import Desktop, DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers.browser.provider import BrowserProvider
from sandbox.providers.hand import Reader, key_name
from sandbox.screen.rfb import Key, Pointer, encode_input
from sandbox.screen.stream import Relay
from tests.sandbox.desktops import needs_headless_shell, new_id
from tests.sandbox.relays import MemoryGate, serving
from tests.sandbox.screens import Viewer, until, viewer
from tests.sandbox.test_desktop_js import Site
from trajectory import KeyDown, KeyUp, MouseDown, MouseUp, Move, Navigate, Scroll

pytestmark = [needs_headless_shell, pytest.mark.timeout(240)]

WIDTH, HEIGHT = 320, 240
PAGE = """<!doctype html><body style="margin:0;height:2000px;background:#fff">
<textarea id="field" style="position:fixed;left:10px;top:10px;width:200px;height:60px"></textarea>
<div id="box" style="position:fixed;left:220px;top:10px;width:90px;height:90px;background:red"></div>
<script>
const seen = []; const doubles = [];
box.onmousedown = (event) => { seen.push([event.button, event.isTrusted]); box.style.background = "blue"; };
box.ondblclick = () => doubles.push(1);
</script>"""
UPDATE = struct.pack(">BBHHHH", 3, 0, 0, 0, WIDTH, HEIGHT)
NEXT = struct.pack(">BBHHHH", 3, 1, 0, 0, WIDTH, HEIGHT)
TIGHT_JPEG = struct.pack(">BxHiii", 2, 3, 7, -26, -239)
RAW_ONLY = struct.pack(">BxHi", 2, 1, 0)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> BrowserProvider:
    return BrowserProvider(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def handle(provider: BrowserProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    site = tmp_path_factory.mktemp("site")
    (site / "index.html").write_text(PAGE)
    handle = provider.start(
        SandboxSpec("seen", width=WIDTH, height=HEIGHT, shared={"/pages": site})
    )
    yield handle
    provider.stop(handle)


@pytest.fixture
def desktop(provider: BrowserProvider, handle: Handle) -> Iterator[Desktop]:
    desktop = provider.connect(handle)
    epoch = int(str(desktop.health()["epoch"])) + 1
    desktop.fence(epoch)
    desktop.perform(Navigate("file:///pages/index.html"), epoch=epoch, action_id=new_id())
    yield desktop
    desktop.close()


@asynccontextmanager
async def watching(
    handle: Handle, encodings: bytes = TIGHT_JPEG
) -> AsyncIterator[tuple[MemoryGate, Viewer]]:
    gate = MemoryGate(handle.rfb_socket)
    async with serving(Relay(gate)) as port, viewer(port, gate.ticket()) as screen:
        assert await screen.shake_hands() == (WIDTH, HEIGHT)
        await screen.send(encodings)
        yield gate, screen


async def picture(screen: Viewer, ask: bytes = UPDATE) -> Image.Image:
    """Return the next picture as the viewer decodes it."""
    await screen.send(ask)
    found = None
    _kind, rectangles = struct.unpack(">BxH", await screen.read(4))
    for _ in range(rectangles):
        _x, _y, width, height, encoding = struct.unpack(">HHHHi", await screen.read(12))
        if encoding == -239:
            await screen.read(4 * width * height + (width + 7) // 8 * height)
        elif encoding == 0:
            data = await screen.read(4 * width * height)
            found = Image.frombytes("RGB", (width, height), data, "raw", "BGRX")
        else:
            assert (encoding, await screen.read(1)) == (7, b"\x90")
            length = shift = 0
            while True:
                byte = (await screen.read(1))[0]
                length |= (byte & (0xFF if shift == 14 else 0x7F)) << shift
                shift += 7
                if not byte & 0x80 or shift == 21:
                    break
            found = Image.open(io.BytesIO(await screen.read(length)))
            assert found.format == "JPEG"
    assert found is not None and found.size == (WIDTH, HEIGHT)
    return found.convert("RGB")


async def shows(screen: Viewer, at: tuple[int, int], colour: tuple[int, int, int]) -> None:
    """Look on until the pixel has about that colour."""
    async with asyncio.timeout(60):
        seen = await picture(screen)
        while max(abs(a - b) for a, b in zip(seen.getpixel(at), colour, strict=True)) > 40:
            seen = await picture(screen, NEXT)


async def holds(desktop: Desktop, expression: str, value: object) -> None:
    """Wait until the page says `value`: input arrives with the next frame."""
    deadline = time.monotonic() + 60
    while (said := await asyncio.to_thread(desktop.evaluate, expression)) != value:
        assert time.monotonic() < deadline, f"{expression} is {said!r}, not {value!r}"
        await asyncio.sleep(0.02)


async def test_a_viewer_sees_the_page_and_what_the_agent_changes(handle, desktop):
    async with watching(handle) as (_, screen):
        await shows(screen, (260, 50), (255, 0, 0))
        desktop.evaluate("box.style.background = 'lime'")
        await shows(screen, (260, 50), (0, 255, 0))


async def test_a_client_without_jpeg_gets_pixels_in_its_own_order(handle, desktop):
    async with watching(handle, RAW_ONLY) as (_, screen):
        await shows(screen, (260, 50), (255, 0, 0))


async def test_a_hand_clicks_and_types_only_while_it_has_control(handle, desktop):
    async with watching(handle) as (gate, screen):
        await picture(screen)
        await screen.send(encode_input(Pointer(260, 50, 1)) + encode_input(Pointer(260, 50, 0)))
        await picture(screen)  # so the relay has dropped that by now
        await gate.give(True)
        await screen.send(encode_input(Pointer(261, 51, 4)) + encode_input(Pointer(261, 51, 0)))
        await holds(desktop, "seen", [[2, True]])  # what came before control was given is not there
        await shows(screen, (225, 95), (0, 0, 255))
        for _ in range(2):
            await screen.send(encode_input(Pointer(262, 52, 1)) + encode_input(Pointer(262, 52, 0)))
        await holds(desktop, "doubles.length", 1)
        await screen.send(encode_input(Pointer(50, 30, 1)) + encode_input(Pointer(50, 30, 0)))
        for keysym in (ord("h"), 0xFFE1, ord("I"), 0x20, 0x010020AC, 0xFF0D, ord("x"), 0xFF08):
            await screen.send(encode_input(Key(keysym, True)))
            if keysym != 0xFFE1:
                await screen.send(encode_input(Key(keysym, False)))
            if keysym == ord("I"):
                await screen.send(encode_input(Key(0xFFE1, False)))
        await holds(desktop, "field.value", "hI €\n")
        await screen.send(encode_input(Pointer(50, 200, 16)) + encode_input(Pointer(50, 200, 0)))
        await holds(desktop, "scrollY", 100)
        assert any(row.event == Key(ord("h"), True) for row in gate.camera.rows)


async def test_the_workbench_shows_the_page_and_a_hand_types_into_it(handle, desktop):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium for the workbench's side")
    site = Site(MemoryGate(handle.rfb_socket))
    async with serving(site) as port, async_playwright() as playwright:
        chrome = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await chrome.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        await page.wait_for_function("window.states?.at(-1)?.[0] === 'connected'")
        # noVNC's canvas, a red box in it.
        await page.wait_for_function("""() => {
          const canvas = document.querySelector('#desk canvas');
          const [red, green] = canvas.getContext('2d').getImageData(260, 50, 1, 1).data;
          return canvas.width === 320 && red > 200 && green < 60; }""")
        site.gate.control = True
        await page.evaluate("desk.setMode('control')")
        await page.wait_for_function("states.length === 3")
        await until(lambda: site.gate.camera.taken > 0)
        box = await page.locator("#desk canvas").bounding_box()
        assert box is not None
        scale = box["width"] / WIDTH
        await page.mouse.click(box["x"] + 50 * scale, box["y"] + 30 * scale)
        await page.keyboard.type("Taken over")
        await holds(desktop, "field.value", "Taken over")
        await chrome.close()


async def test_two_viewers_and_one_that_leaves_in_the_middle(handle, desktop):
    async with watching(handle) as (_, first):
        async with watching(handle) as (_, second):
            await picture(second)
            await second.send(UPDATE[:4])
        await shows(first, (260, 50), (255, 0, 0))


def test_a_key_that_changed_its_case_goes_up_again():
    reader = Reader()
    events = [Key(0xFFE1, True), Key(ord("A"), True), Key(0xFFE1, False), Key(ord("a"), False)]
    made = [one.action for event in events for one in reader.read(event)]
    assert made == [KeyDown("shift"), KeyDown("A"), KeyUp("shift"), KeyUp("A")]
    assert key_name(0xFE03) == key_name(0x1234) == ""


def test_buttons_and_wheel_are_told_apart():
    reader = Reader()
    events = [
        Pointer(5, 5, 0),
        Pointer(6, 5, 1),
        Pointer(9, 5, 1),
        Pointer(9, 5, 0),
        Pointer(9, 5, 8),
    ]
    assert [one.action for event in events for one in reader.read(event)] == [
        Move(5, 5), Move(6, 5), MouseDown("left"), Move(9, 5), MouseUp("left"),
        Scroll(9, 5, 0, -1),
    ]  # fmt: skip


def test_the_cause_of_a_lost_page_is_named_and_nothing_is_left(provider: BrowserProvider):
    handle = provider.start(SandboxSpec("lost", width=200, height=100))
    desktop = provider.connect(handle)
    browser = int(Path(f"/proc/{handle.pid}/task/{handle.pid}/children").read_text().split()[0])
    os.kill(browser, signal.SIGKILL)
    with pytest.raises(DesktopLost, match="killed by signal 9"):
        for _ in range(200):
            desktop.observe()
            time.sleep(0.01)
    deadline = time.monotonic() + 60
    while provider.alive(handle):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(DesktopLost, match="killed by signal 9"):
        provider.connect(handle)
    assert handle in provider.running()
    provider.stop(handle)
    assert handle not in provider.running()
    assert not Path(handle.rfb_socket).parent.exists()


def test_an_orphan_is_found_by_another_process_and_its_browser_ended(
    provider: BrowserProvider, tmp_path: Path
):
    first = BrowserProvider(tmp_path)
    handle = first.start(SandboxSpec("orphan", width=200, height=100))
    second = BrowserProvider(tmp_path)  # as after a restart of the host's process
    assert second.running() == [handle] and second.alive(handle)
    second.stop(handle)
    assert not second.running() and not first.alive(handle)
    with pytest.raises(ProvisionFailed, match="network"):
        second.start(SandboxSpec("orphan", network="allowlist"))
