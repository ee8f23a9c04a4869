"""static/js/terminal.js in real Chromium: typing, what a guest's program says, coming back."""

from __future__ import annotations

import json
import mimetypes
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright

from sandbox.provider import Desktop, SandboxSpec
from sandbox.providers.fake import FakeProvider
from sandbox.screen.gate import Grant
from sandbox.terminal import TerminalRelay
from tests.sandbox.relays import MemoryGate, serving

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
STATIC = Path(__file__).resolve().parents[2] / "static"
PAGE = b"""<!doctype html><title>page</title><link rel="stylesheet" href="/static/vendor/xterm/xterm.css">
<body style="margin:0"><div id="terminal" style="width:800px;height:300px"></div>
<script type="module">
import { DesktopTerminal } from "/static/js/terminal.js";
window.states = []; window.opened = [];
window.open = (url) => window.opened.push(url);
window.terminal = new DesktopTerminal(document.getElementById("terminal"), {
  ticketUrl: "/ticket", csrf: "token", onState: (state, message) => window.states.push([state, message]),
});
</script>"""
SHOWN = "document.querySelector('.xterm-rows').innerText"


class Site:
    """The page, the static files, a ticket office and the terminals of one fake desktop."""

    def __init__(self, gate: MemoryGate, relay: TerminalRelay) -> None:
        self.gate, self.relay = gate, relay
        self.sockets: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            self.sockets.append(send)
            return await self.relay(scope, receive, send)
        kind, body = "text/html", PAGE
        if scope["path"].startswith("/static/"):
            file = STATIC / scope["path"].removeprefix("/static/")
            kind, body = mimetypes.guess_type(file.name)[0] or "text/plain", file.read_bytes()
        elif scope["path"] == "/ticket":
            kind = "application/json"
            body = json.dumps({"ticket": self.gate.ticket("control"), "mode": "control"}).encode()
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def opened() -> AsyncIterator[tuple[Page, Site]]:
    """A page with a terminal that has a prompt."""
    provider = FakeProvider()
    handle = provider.start(SandboxSpec("terminal-js"))
    provider.connect(handle).fence(1)
    gate = MemoryGate(Path("no-screen"))
    gate.control = True

    def desktop(grant: Grant) -> Desktop:
        return provider.connect(handle)

    site = Site(gate, TerminalRelay(gate, desktop))
    async with serving(site) as port, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        await page.wait_for_function(f"/[#$]\\s*$/.test({SHOWN})")
        yield page, site
        await browser.close()
    provider.stop(handle)


async def test_a_person_types_and_a_program_stays_inside(opened: tuple[Page, Site]) -> None:
    page, site = opened
    await page.click("#terminal")
    await page.keyboard.type("echo '你好' $((40+2))done\n")
    await page.wait_for_function(f"{SHOWN}.includes('你好 42done')")
    hostile = r"\033]0;evil\007\033]8;;http://evil.example\033\\click\033]8;;\033\\ \033]52;c;ZXZpbA==\007"
    await page.keyboard.type(f"clear; printf '{hostile}'; echo $((41+2))done\n")
    await page.wait_for_function(f"{SHOWN}.includes('43done')")
    await page.click("#terminal", position={"x": 12, "y": 8})
    assert await page.title() == "page"
    assert await page.evaluate("window.opened") == []
    assert await page.evaluate("document.querySelectorAll('#terminal a').length") == 0

    await page.keyboard.type("kept=yes\n")
    await page.wait_for_function(f"{SHOWN}.includes('kept=yes')")
    await site.sockets[-1]({"type": "websocket.close", "code": 1012})  # the server restarts
    await page.wait_for_function("window.states.filter(([s]) => s === 'open').length === 2")
    await page.keyboard.type("echo $kept$((44+2))\n")
    await page.wait_for_function(f"{SHOWN}.includes('yes46')")
    await page.keyboard.type("exit 3\n")
    await page.wait_for_function("window.states.at(-1)[0] === 'closed'")
    assert await page.evaluate("window.states.at(-1)[1]") == "The shell ended with status 3."
