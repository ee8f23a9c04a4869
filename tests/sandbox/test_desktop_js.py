"""static/js/desktop.js in real Chromium: tickets, pixels, coordinates, control, reconnecting."""

from __future__ import annotations

import json
import mimetypes
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright
from Xlib.display import Display

from sandbox.screen.gate import Close, Hint, Refused
from sandbox.screen.stream import Relay
from tests.sandbox.relays import MemoryGate, serving
from tests.sandbox.screens import HEIGHT, WIDTH, until, xvnc

STATIC = Path(__file__).resolve().parents[2] / "static"
PAGE = b"""<!doctype html><body style="margin:0">
<div id="desk" style="width:640px;height:500px"></div>
<script type="module">
import { openDesktop } from "/static/js/desktop.js";
window.states = []; window.places = [];
window.desk = openDesktop(document.getElementById("desk"), {
  ticketUrl: "/ticket", csrf: "token", mode: "view",
  onState: (state, message) => window.states.push([state, message]),
  onPointer: (place) => window.places.push(place),
});
</script>"""


class Site:
    """A page, the static files, a ticket office and the relay."""

    def __init__(self, gate: MemoryGate) -> None:
        self.gate = gate
        self.relay = Relay(gate)
        self.asked: list[str] = []
        self.status = 200

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self.relay(scope, receive, send)
            return
        status, kind, body = 200, "text/html", PAGE
        if scope["path"].startswith("/static/"):
            file = STATIC / scope["path"].removeprefix("/static/")
            kind, body = mimetypes.guess_type(file.name)[0] or "text/plain", file.read_bytes()
        elif scope["path"] == "/ticket":
            mode = (await receive())["body"].decode().removeprefix("mode=")
            self.asked.append(mode)
            answer = {"ticket": self.gate.ticket(mode), "mode": mode}
            status, kind, body = self.status, "application/json", json.dumps(answer).encode()
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


Browser = tuple[Page, Site, Display]


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """A page with a connected desktop of a real Xvnc: (page, site, display)."""
    chromium = shutil.which("chromium")
    assert chromium, "these tests need chromium: apt install chromium"
    with xvnc(tmp_path) as socket:
        display = Display((tmp_path / "display").read_text())
        display.screen().root.change_attributes(background_pixel=0x3366CC)
        display.screen().root.clear_area(0, 0, WIDTH, HEIGHT)
        display.sync()
        site = Site(MemoryGate(socket))
        async with serving(site) as port, async_playwright() as playwright:
            chrome = await playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"]
            )
            page = await chrome.new_page()
            await page.goto(f"http://127.0.0.1:{port}/")
            await connected(page)
            yield page, site, display
            await chrome.close()
        display.close()


async def connected(page: Page) -> None:
    await page.wait_for_function("window.states?.at(-1)?.[0] === 'connected'")


async def test_the_picture_is_scaled_and_coordinates_follow(browser: Browser) -> None:
    page, site, _ = browser
    assert site.asked == ["view"]
    await page.wait_for_function(
        """() => {
          const canvas = document.querySelector("#desk canvas");
          const [r, g, b] = canvas.getContext("2d").getImageData(10, 10, 1, 1).data;
          return r === 0x33 && g === 0x66 && b === 0xcc;
        }"""
    )
    box = await page.evaluate(
        "(({x, y, width, height}) => [x, y, width, height])"
        "(document.querySelector('#desk canvas').getBoundingClientRect())"
    )
    assert box == pytest.approx([0, 50, 640, 400], abs=1)  # 320x200 at twice the size, centred
    for x, y in ((0, 0), (160, 100), (WIDTH - 1, HEIGHT - 1)):
        back = await page.evaluate(
            "([x, y]) => { const at = desk.fromFrame(x, y); return desk.toFrame(at.x, at.y); }",
            [x, y],
        )
        assert back == {"x": x, "y": y}
    assert await page.evaluate("desk.toFrame(5, 5)") is None
    await page.mouse.move(100, 150)
    assert (await page.evaluate("places.at(-1)")) == {"x": 50, "y": 50}


async def test_a_hand_gets_through_in_control_only(browser: Browser) -> None:
    page, site, display = browser

    def pointer() -> tuple[int, int]:
        place = display.screen().root.query_pointer()
        return place.root_x, place.root_y

    site.gate.control = True
    await page.mouse.click(100, 150)
    assert await page.evaluate("document.getElementById('desk').dataset.keys") == "page"
    await page.evaluate("desk.setMode('control')")
    await page.wait_for_function("states.length === 3")  # the picture never went away
    assert await page.evaluate("document.querySelectorAll('#desk canvas').length") == 1
    assert site.asked == ["view", "control"]
    assert pointer() != (50, 50)
    await until(lambda: site.gate.camera.taken > 0)
    await page.mouse.click(100, 150)
    await until(lambda: pointer() == (50, 50))
    assert await page.evaluate("document.getElementById('desk').dataset.keys") == "desktop"
    await page.evaluate("desk.setMode('view')")
    assert await page.evaluate("document.getElementById('desk').dataset.keys") == "page"
    assert site.asked == ["view", "control"]  # nothing new is needed to look only


async def test_a_broken_connection_comes_back_with_a_new_ticket(browser: Browser) -> None:
    page, site, _ = browser
    site.status = 500
    site.gate.end = Refused(Close.DESKTOP_GONE, "the desktop has gone")
    site.gate.hint(Hint())
    await page.wait_for_function("states.at(-1)[0] === 'reconnecting'")
    await until(lambda: len(site.asked) >= 3)
    site.gate.end, site.status = None, 200
    await connected(page)
    assert await page.evaluate("document.querySelectorAll('#desk canvas').length") == 1


async def test_a_lease_that_is_over_ends_it(browser: Browser) -> None:
    page, site, _ = browser
    site.gate.end = Refused(Close.LEASE_OVER, "the lease is over")
    site.gate.hint(Hint())
    await page.wait_for_function("states.at(-1)[0] === 'closed'")
    assert "given back" in await page.evaluate("states.at(-1)[1]")
    assert site.asked == ["view"]
