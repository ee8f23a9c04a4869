"""A leased computer over MCP, asked by the SDK's own client."""

from __future__ import annotations

import base64
import io
import json
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("mcp", reason="needs the mcp package")

from mcp import Client

from sandbox.mcp.hands import read_keys
from sandbox.mcp.server import make_server
from sandbox.provider import ActionResult, Desktop, SandboxSpec
from sandbox.providers import load
from sandbox.providers.fake import BOX, FakeProvider
from tests.sandbox.desktops import needs_local, new_id
from trajectory import Action, Click, Drag, Hotkey, Scroll, Wait


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose sockets have short enough names."""
    with tempfile.TemporaryDirectory(prefix="mcp-") as folder:
        yield Path(folder)


@dataclass
class Computer:
    """A desktop that nobody else wants."""

    desktop: Desktop
    epoch: int = 1
    name: str = "test"

    def perform(self, action: Action) -> ActionResult:
        return self.desktop.perform(action, epoch=self.epoch, action_id=uuid.uuid4().hex)

    def shell(self, command: str, *, timeout_ms: int) -> ActionResult:
        return self.desktop.shell(
            command, epoch=self.epoch, action_id=uuid.uuid4().hex, timeout_ms=timeout_ms
        )

    def check(self) -> None:
        self.desktop.health()


@pytest.fixture
def fake() -> Iterator[Any]:
    provider = FakeProvider()
    handle = provider.start(SandboxSpec(new_id()))
    desktop = provider.connect(handle)
    desktop.fence(1)
    yield desktop
    provider.stop(handle)


async def _said(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return "".join(part.text for part in result.content)


async def _refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return "".join(part.text for part in result.content)


async def _picture(client: Client, tool: str = "screenshot", **arguments: Any) -> Image.Image:
    (part,) = (await client.call_tool(tool, arguments)).content
    assert part.mime_type == "image/png"
    return Image.open(io.BytesIO(base64.b64decode(part.data)))


async def test_a_client_sees_clicks_and_types(fake: Any) -> None:
    async with Client(make_server(Computer(fake))) as client:
        assert (await _picture(client)).size == (1280, 720)
        await _said(client, "click", x=BOX[0] + 5, y=BOX[1] + 5)
        await _said(client, "type", text="grüß dich")
        assert "grüß dich" in await _said(client, "elements")
        assert (await _picture(client, "zoom", left=0, top=0, right=128, bottom=72)).size == (
            1280,
            720,
        )


async def test_every_tool_is_one_action(fake: Any) -> None:
    async with Client(make_server(Computer(fake))) as client:
        await _said(client, "click", x=0, y=0, button="right", count=2, modifiers=["Control"])
        await _said(client, "drag", path=[[1, 2], [3, 4]])
        await _said(client, "scroll", x=5, y=6, dx=-2)
        await _said(client, "key", keys="ctrl++")
        await _said(client, "wait", seconds=0.001)
    assert fake.performed == [
        Click(0, 0, "right", 2, ("ctrl",)),
        Drag(((1, 2), (3, 4))),
        Scroll(5, 6, dx=-2),
        Hotkey(("ctrl", "+")),
        Wait(1),
    ]


async def test_the_shell_and_the_files_are_the_computer_s(fake: Any) -> None:
    async with Client(make_server(Computer(fake))) as client:
        await _said(client, "write_file", path="a/b.txt", text="hello\n")
        assert await _said(client, "shell", command="cat a/b.txt; exit 3") == (
            "hello\n\n[exit code 3]"
        )
        assert await _said(client, "read_file", path="a/b.txt") == "hello\n"
        await _said(client, "shell", command="printf '\\377' > raw; yes | head -c 2000000 > big")
        assert "no text" in await _refused(client, "read_file", path="raw")
        assert "2000000 bytes" in await _refused(client, "read_file", path="big")
        assert "outside" in await _refused(client, "read_file", path="../../etc/passwd")
        assert "cut" in await _said(client, "shell", command="cat big")


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("click", {"x": 5000, "y": 1}, "outside"),
        ("click", {"x": -1, "y": 1}, "x"),
        ("click", {"x": 1}, "y"),
        ("click", {"x": 1, "y": 1, "button": "fifth"}, "button"),
        ("click", {"x": 1, "y": 1, "modifiers": ["hyper"]}, "hyper"),
        ("key", {"keys": "ctrl+hyper"}, "hyper"),
        ("drag", {"path": [[1, 2]]}, "path"),
        ("scroll", {"x": 1, "y": 1, "dy": 10_000}, "dy"),
        ("zoom", {"left": 9, "top": 9, "right": 9, "bottom": 9}, "no part"),
        ("shell", {"command": "true", "timeout_s": 10**9}, "timeout_s"),
        ("read_file", {"path": "absent"}, "absent"),
    ],
)
async def test_what_can_not_be_done_is_named(
    fake: Any, tool: str, arguments: dict[str, Any], names: str
) -> None:
    async with Client(make_server(Computer(fake))) as client:
        assert names in await _refused(client, tool, **arguments)
    assert fake.performed == []


async def test_a_holder_who_lost_the_computer_is_refused(fake: Any) -> None:
    async with Client(make_server(Computer(fake))) as client:
        fake.fence(2)
        assert "StaleLease" in await _refused(client, "move", x=1, y=1)
        assert "StaleLease" in await _refused(client, "write_file", path="a", text="")
    assert fake.performed == []


async def test_the_tools_say_what_they_take(fake: Any) -> None:
    async with Client(make_server(Computer(fake))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"screenshot", "click", "type", "key", "scroll", "drag", "shell", "read_file",
            "write_file", "wait"} <= set(tools)  # fmt: skip
    assert all(tool.description for tool in tools.values())
    assert "button" in json.dumps(tools["click"].input_schema)


@pytest.mark.parametrize(
    ("text", "keys"),
    [("enter", ("enter",)), ("ctrl+-", ("ctrl", "-")), ("+", ("+",)), ("ctrl++", ("ctrl", "+"))],
)
def test_keys_are_split_from_the_right(text: str, keys: tuple[str, ...]) -> None:
    assert read_keys(text) == keys


@needs_local
async def test_a_real_desktop_over_mcp(short_path: Path) -> None:
    provider = load("local", state=short_path)
    handle = provider.start(SandboxSpec("real"))
    try:
        desktop = provider.connect(handle)
        desktop.fence(1)
        async with Client(make_server(Computer(desktop))) as client:
            before = await _picture(client)
            await _said(client, "write_file", path="seen.txt", text="1")
            assert "seen.txt" in await _said(client, "shell", command="ls")
            await _said(client, "move", x=640, y=360)
            assert before.size == (await _picture(client)).size == (1280, 720)
        desktop.close()
    finally:
        provider.stop(handle)
