"""Playwright's MCP tools with coordinates: `{"name": "browser_mouse_click_xy", "arguments": {...}}`.

Places are CSS pixels of the viewport; the wheel turns where the pointer is. The schema is that of the
server inside Playwright 1.65.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, Size, milliseconds, place_out, seconds
from agent.dialects.tools.keys import PLAYWRIGHT
from agent.dialects.tools.scroll import notches
from agent.dialects.tools.state import State
from trajectory import (
    Action,
    Button,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    MouseDown,
    MouseUp,
    Move,
    Navigate,
    NavigateBack,
    Point,
    Scroll,
    Type,
    Wait,
)

SCROLL_PX = 100
_BUTTONS: tuple[Button, ...] = ("left", "right", "middle")


@dataclass(frozen=True, slots=True)
class Playwright:
    """`viewport` is the page's size in CSS pixels; None: that of the frame."""

    name: str = "playwright-mcp"
    viewport: Size | None = None
    scroll_px: int = SCROLL_PX
    nearest: bool = False

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read one tool call; raises ParseError, LossyConversion."""
        fields = Fields(str(call.get("name")), call.get("arguments") or {})
        fields.take("element")  # older servers want a description for the person who permits it
        actions = self._of(fields, frame, state)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one tool call, or a move and a turn of the wheel; raises LossyConversion."""
        return tuple(
            {"name": name, "arguments": values}
            for name, values in self._calls(action, frame, state)
        )

    def _of(self, fields: Fields, frame: Frame, state: State) -> tuple[Action, ...]:
        size = self._size(frame)
        match fields.name:
            case "browser_mouse_click_xy":
                place, button = fields.place(size, frame), fields.word("button", _BUTTONS, "left")
                count = fields.whole("clickCount", 1)
                if not 1 <= count <= 3:
                    raise ParseError(f"clickCount is {count}, 1 to 3 is wanted")
                if delay := fields.number("delay", 0):
                    raise LossyConversion(f"a click that holds for {delay:g} ms")
                return (Click(*place, button, count),)
            case "browser_mouse_move_xy":
                return (Move(*fields.place(size, frame)),)
            case "browser_mouse_down":
                return (MouseDown(fields.word("button", _BUTTONS, "left")),)
            case "browser_mouse_up":
                return (MouseUp(fields.word("button", _BUTTONS, "left")),)
            case "browser_mouse_drag_xy":
                start = fields.place(size, frame, "startX", "startY")
                return (Drag((start, fields.place(size, frame, "endX", "endY"))),)
            case "browser_mouse_wheel":
                dx, dy = (
                    notches(fields.number(key, 0), self.scroll_px, nearest=self.nearest, what=key)
                    for key in ("deltaX", "deltaY")
                )
                return (Scroll(*state.at(fields.name), dx, dy),)
            case "browser_press_key":
                return (Hotkey(PLAYWRIGHT.read_joined(fields.text("key"))),)
            case "browser_keydown":
                return (KeyDown(*PLAYWRIGHT.read([fields.text("key")])),)
            case "browser_keyup":
                return (KeyUp(*PLAYWRIGHT.read([fields.text("key")])),)
            case "browser_press_sequentially":
                return (Type(fields.text("text"), fields.flag("submit", False)),)
            case "browser_navigate":
                return (Navigate(fields.text("url")),)
            case "browser_navigate_back":
                return (NavigateBack(),)
            case "browser_wait_for":
                if fields.has("text") or fields.has("textGone"):
                    raise LossyConversion("no canonical action waits for a text")
                return (Wait(milliseconds(fields.number("time"), "browser_wait_for")),)
            case "browser_take_screenshot":
                return (Wait(0),)
            case _:
                raise ParseError(f"there is no tool here called {quote(fields.name)}")

    def _calls(
        self, action: Action, frame: Frame, state: State
    ) -> list[tuple[str, dict[str, Any]]]:
        match action:
            case Click(x=x, y=y, button=button, count=1 | 2 | 3 as count, modifiers=()) if (
                button in _BUTTONS
            ):
                more: dict[str, Any] = {} if button == "left" else {"button": button}
                more |= {} if count == 1 else {"clickCount": count}
                return [("browser_mouse_click_xy", self._place((x, y), frame) | more)]
            case Move(x=x, y=y):
                return [("browser_mouse_move_xy", self._place((x, y), frame))]
            case MouseDown(button=button) if button in _BUTTONS:
                return [("browser_mouse_down", {} if button == "left" else {"button": button})]
            case MouseUp(button=button) if button in _BUTTONS:
                return [("browser_mouse_up", {} if button == "left" else {"button": button})]
            case Drag(path=(first, last), button="left"):
                ends = self._place(first, frame, "startX", "startY")
                ends |= self._place(last, frame, "endX", "endY")
                return [("browser_mouse_drag_xy", ends)]
            case Scroll(x=x, y=y, dx=dx, dy=dy):
                px = {"deltaX": dx * self.scroll_px, "deltaY": dy * self.scroll_px}
                wheel = ("browser_mouse_wheel", px)
                if state.pointer == (x, y):
                    return [wheel]
                return [("browser_mouse_move_xy", self._place((x, y), frame)), wheel]
            case Hotkey(keys=keys):
                return [("browser_press_key", {"key": PLAYWRIGHT.write_joined(keys)})]
            case KeyDown(key=key):
                return [("browser_keydown", {"key": PLAYWRIGHT.write([key])[0]})]
            case KeyUp(key=key):
                return [("browser_keyup", {"key": PLAYWRIGHT.write([key])[0]})]
            case Type(text=text, submit=submit):
                more = {"submit": True} if submit else {}
                return [("browser_press_sequentially", {"text": text} | more)]
            case Navigate(url=url):
                return [("browser_navigate", {"url": url})]
            case NavigateBack():
                return [("browser_navigate_back", {})]
            case Wait(duration_ms=0):
                return [("browser_take_screenshot", {})]
            case Wait(duration_ms=ms) if 0 < ms <= 3_600_000:
                return [("browser_wait_for", {"time": seconds(ms)})]
            case _:
                raise LossyConversion(f"Playwright's tools can't say {action}")

    def _size(self, frame: Frame) -> Size:
        return self.viewport or (frame.width, frame.height)

    def _place(self, point: Point, frame: Frame, x: str = "x", y: str = "y") -> dict[str, Any]:
        left, top = place_out(point, self._size(frame), frame)
        return {x: left, y: top}
