"""Gemini's computer use since 3.5: `{"name": "click", "args": {"x": 500, "y": 300}}` on 0..999.

Browser, desktop and mobile share most names; the functions are those of Google's documentation of
the tool. `intent` is the model's reason and no part of an action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, milliseconds, place_out, seconds
from agent.dialects.tools.keys import SHOUTED
from agent.dialects.tools.scroll import notches, one_way
from agent.dialects.tools.state import State
from agent.dialects.verbs import DIRECTIONS
from trajectory import (
    Action,
    Button,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Navigate,
    NavigateBack,
    OpenApp,
    Point,
    Scroll,
    Type,
    Wait,
)

GRID = (1000, 1000)
SCROLL_PX = 100
SCROLL_DEFAULT = 300
LONG_PRESS_S = 2

_CLICKS: dict[str, tuple[Button, int]] = {
    **{"click": ("left", 1), "double_click": ("left", 2), "triple_click": ("left", 3)},
    **{"middle_click": ("middle", 1), "right_click": ("right", 1)},
}
_NAMES = {click: name for name, click in _CLICKS.items()}


def arguments(call: Mapping[str, Any]) -> Fields:
    """Return the fields of a function call.

    Raises LossyConversion for one that a person has to confirm: an action can't say that.
    """
    fields = Fields(str(call.get("name")), call.get("args", call.get("arguments")) or {})
    fields.take("intent")
    safety = fields.take("safety_decision") or {"decision": "regular"}
    if not isinstance(safety, Mapping) or safety.get("decision") != "regular":
        raise LossyConversion(f"a person has to confirm this call: {quote(repr(safety))}")
    return fields


@dataclass(frozen=True, slots=True)
class Gemini:
    """`scroll_px` pixels are a notch."""

    name: str = "gemini"
    scroll_px: int = SCROLL_PX
    nearest: bool = False

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read one function call; raises ParseError, LossyConversion."""
        fields = arguments(call)
        actions = self._of(fields, frame, state)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one function call; raises LossyConversion."""
        name, values = self._call(action, frame, state)
        return ({"name": name, "args": values},)

    def _of(self, fields: Fields, frame: Frame, state: State) -> tuple[Action, ...]:
        match fields.name:
            case name if name in _CLICKS:
                button, count = _CLICKS[name]
                return (Click(*fields.place(GRID, frame), button, count),)
            case "move":
                return (Move(*fields.place(GRID, frame)),)
            case "mouse_down" | "mouse_up":
                place = fields.place(GRID, frame)
                turn = MouseDown() if fields.name == "mouse_down" else MouseUp()
                here = state.pointer and place_of(state.pointer, frame) == place_of(place, frame)
                return (turn,) if here else (Move(*place), turn)
            case "drag_and_drop":
                start = fields.place(GRID, frame, "start_x", "start_y")
                return (Drag((start, fields.place(GRID, frame, "end_x", "end_y"))),)
            case "long_press":
                place = fields.place(GRID, frame)
                ms = milliseconds(fields.number("seconds", LONG_PRESS_S), "long_press")
                return (LongPress(*place, ms),)
            case "scroll":
                return (self._scroll(fields, frame),)
            case "type":
                return (Type(fields.text("text"), fields.flag("press_enter", False)),)
            case "press_key":
                return (Hotkey(SHOUTED.read([fields.text("key")])),)
            case "hotkey":
                return (Hotkey(SHOUTED.read(fields.words("keys"))),)
            case "key_down":
                return (KeyDown(*SHOUTED.read([fields.text("key")])),)
            case "key_up":
                return (KeyUp(*SHOUTED.read([fields.text("key")])),)
            case "wait":
                return (Wait(milliseconds(fields.number("seconds", 1), "wait")),)
            case "take_screenshot":
                return (Wait(0),)
            case "navigate":
                return (Navigate(fields.text("url")),)
            case "go_back":
                return (NavigateBack(),)
            case "open_app":
                return (OpenApp(fields.text("app_name")),)
            case "go_forward" | "list_apps":
                raise LossyConversion(f"no canonical action says {fields.name}")
            case _:
                raise ParseError(f"there is no function called {quote(fields.name)}")

    def _scroll(self, fields: Fields, frame: Frame) -> Scroll:
        place = fields.place(GRID, frame)
        dx, dy = DIRECTIONS[fields.word("direction", tuple(DIRECTIONS))]
        if fields.has("magnitude_in_wheel_clicks"):  # desktops have been seen to count like this
            amount = fields.whole("magnitude_in_wheel_clicks")
        else:
            px = fields.number("magnitude_in_pixels", SCROLL_DEFAULT)
            amount = notches(px, self.scroll_px, nearest=self.nearest, what="scroll")
        if amount <= 0:
            raise ParseError("scroll: a magnitude above 0 is wanted")
        return Scroll(*place, dx * amount, dy * amount)

    def _call(self, action: Action, frame: Frame, state: State) -> tuple[str, dict[str, Any]]:
        match action:
            case Click(x=x, y=y, modifiers=()) if name := _NAMES.get((action.button, action.count)):
                return name, place_of((x, y), frame)
            case Move(x=x, y=y):
                return "move", place_of((x, y), frame)
            case MouseDown(button="left") if state.pointer is not None:
                return "mouse_down", place_of(state.pointer, frame)
            case MouseUp(button="left") if state.pointer is not None:
                return "mouse_up", place_of(state.pointer, frame)
            case Drag(path=(first, last), button="left"):
                ends = place_of(first, frame, "start_x", "start_y")
                return "drag_and_drop", ends | place_of(last, frame, "end_x", "end_y")
            case LongPress(x=x, y=y, duration_ms=ms) if ms % 1000 == 0 and 0 <= ms <= 3_600_000:
                return "long_press", place_of((x, y), frame) | {"seconds": ms // 1000}
            case Scroll(x=x, y=y):
                direction, amount = one_way(action)
                way = {"direction": direction, "magnitude_in_pixels": amount * self.scroll_px}
                return "scroll", place_of((x, y), frame) | way
            case Type(text=text, submit=submit):
                return "type", {"text": text, "press_enter": submit}
            case Hotkey(keys=(key,)):
                return "press_key", {"key": SHOUTED.write([key])[0]}
            case Hotkey(keys=keys):
                return "hotkey", {"keys": SHOUTED.write(keys)}
            case KeyDown(key=key):
                return "key_down", {"key": SHOUTED.write([key])[0]}
            case KeyUp(key=key):
                return "key_up", {"key": SHOUTED.write([key])[0]}
            case Wait(duration_ms=0):
                return "take_screenshot", {}
            case Wait(duration_ms=ms) if 0 < ms <= 3_600_000 and ms % 1000 == 0:
                return "wait", {"seconds": seconds(ms)}
            case Navigate(url=url):
                return "navigate", {"url": url}
            case NavigateBack():
                return "go_back", {}
            case OpenApp(name=name):
                return "open_app", {"app_name": name}
            case _:
                raise LossyConversion(f"Gemini can't say {action}")


def place_of(point: Point, frame: Frame, x: str = "x", y: str = "y") -> dict[str, Any]:
    """Return a place as the two fields of a function call, 0..999."""
    left, top = place_out(point, GRID, frame)
    return {x: left, y: top}
