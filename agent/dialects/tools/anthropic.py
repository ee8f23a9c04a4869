"""Anthropic's computer tool: `{"action": "left_click", "coordinate": [1, 2]}`, pixels of the picture.

Versions: 20241022 (clicks take no coordinate, a drag begins at the pointer), 20250124, 20251124
(zoom), and toolset_20260801, where each action is a tool: `{"name": "left_click", "input": {...}}`
(schema: the SDK's `types/computer_*_input.py`, 2.12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, Size, milliseconds, place_out, seconds
from agent.dialects.tools.keys import X_KEYSYMS
from agent.dialects.tools.scroll import one_way
from agent.dialects.tools.state import State, held
from agent.dialects.tools.text import read_type, write_type
from agent.dialects.verbs import DIRECTIONS
from trajectory import (
    Action,
    Button,
    Click,
    Drag,
    Hotkey,
    MouseDown,
    MouseUp,
    Move,
    Point,
    Scroll,
    Type,
    Wait,
)

Version = Literal["20241022", "20250124", "20251124", "toolset_20260801"]

MAX_REPEAT = 100

_CLICKS: dict[str, tuple[Button, int]] = {
    **{"left_click": ("left", 1), "right_click": ("right", 1), "middle_click": ("middle", 1)},
    **{"double_click": ("left", 2), "triple_click": ("left", 3)},
}
_NAMES = {click: name for name, click in _CLICKS.items()}
_SINCE_2025 = {
    *("triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "zoom")
}


@dataclass(frozen=True, slots=True)
class Anthropic:
    """`picture` is the size of the scaled screenshot that the model saw; None: that of the frame."""

    version: Version = "20251124"
    picture: Size | None = None

    @property
    def name(self) -> str:
        return f"anthropic-{self.version}"

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read the input of a tool_use block, or the block itself; raises ParseError, LossyConversion."""
        if self.version == "toolset_20260801":
            fields = Fields(str(call.get("name")), call.get("input") or {})
        else:
            inner = call.get("input", call)
            fields = Fields("computer", inner)
            fields.name = fields.text("action")
        if self._old and fields.name in _SINCE_2025:
            raise ParseError(f"{self.name} has no action {fields.name}")
        actions = self._of(fields, frame, state)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one call, or a mouse_move and one where the version's calls have no place."""
        return tuple(
            {"name": name, "input": values}
            if self.version == "toolset_20260801"
            else {"action": name, **values}
            for name, values in self._calls(action, frame, state)
        )

    def _of(self, fields: Fields, frame: Frame, state: State) -> tuple[Action, ...]:
        match fields.name:
            case name if name in _CLICKS:
                button, count = _CLICKS[name]
                place = self._at(fields, frame, state)
                return (Click(*place, button, count, self._modifiers(fields)),)
            case "mouse_move":
                return (Move(*fields.pair("coordinate", self._size(frame), frame)),)
            case "left_click_drag":
                start = self._at(fields, frame, state, "start_coordinate")
                path = (start, fields.pair("coordinate", self._size(frame), frame))
                return held(self._modifiers(fields), Drag(path))
            case "left_mouse_down":
                return (MouseDown(),)
            case "left_mouse_up":
                return (MouseUp(),)
            case "scroll":
                place = self._at(fields, frame, state)
                dx, dy = DIRECTIONS[fields.word("scroll_direction", tuple(DIRECTIONS))]
                if (amount := fields.whole("scroll_amount")) <= 0:
                    raise ParseError(f"scroll: scroll_amount is {amount}, 1 or more is wanted")
                scroll = Scroll(*place, dx * amount, dy * amount)
                return held(self._modifiers(fields), scroll)
            case "key":
                repeat = fields.whole("repeat", 1)
                if not 1 <= repeat <= MAX_REPEAT:
                    raise ParseError(f"key: repeat is {repeat}, 1 to {MAX_REPEAT} is wanted")
                # xdotool presses words that a space divides one after the other.
                words = fields.text("text").split() or [" "]
                return tuple(Hotkey(X_KEYSYMS.read_joined(word)) for word in words) * repeat
            case "hold_key":
                keys = X_KEYSYMS.read_joined(fields.text("text"))
                return held(keys, Wait(milliseconds(fields.number("duration"), "hold_key")))
            case "type":
                return (read_type(fields.text("text")),)
            case "wait":
                return (Wait(milliseconds(fields.number("duration"), "wait")),)
            case "screenshot":
                return (Wait(0),)
            case "zoom":
                raise LossyConversion(f"zoom to {fields.take('region')} looks, and does nothing")
            case "cursor_position":
                raise LossyConversion("cursor_position asks, and does nothing")
            case _:
                raise ParseError(f"there is no action called {quote(fields.name)}")

    def _calls(
        self, action: Action, frame: Frame, state: State
    ) -> list[tuple[str, dict[str, Any]]]:
        match action:
            case Click(x=x, y=y, modifiers=keys) if self._says(
                name := _NAMES.get((action.button, action.count), "")
            ):
                if self._old:
                    if keys:
                        raise LossyConversion(f"{self.name} can't hold {keys} during a click")
                    return [*self._moved((x, y), frame, state), (name, {})]
                text = {"text": X_KEYSYMS.write_joined(keys)} if keys else {}
                return [(name, {"coordinate": self._pair((x, y), frame), **text})]
            case Move(x=x, y=y):
                return [("mouse_move", {"coordinate": self._pair((x, y), frame)})]
            case Drag(path=(first, last), button="left"):
                end = {"coordinate": self._pair(last, frame)}
                if self._old:
                    return [*self._moved(first, frame, state), ("left_click_drag", end)]
                start = {"start_coordinate": self._pair(first, frame)}
                return [("left_click_drag", {**start, **end})]
            case MouseDown(button="left") if self._says("left_mouse_down"):
                return [("left_mouse_down", {})]
            case MouseUp(button="left") if self._says("left_mouse_up"):
                return [("left_mouse_up", {})]
            case Scroll(x=x, y=y) if self._says("scroll"):
                direction, amount = one_way(action)
                way = {"scroll_direction": direction, "scroll_amount": amount}
                return [("scroll", {"coordinate": self._pair((x, y), frame), **way})]
            case Hotkey(keys=keys):
                return [("key", {"text": X_KEYSYMS.write_joined(keys)})]
            case Type():
                return [("type", {"text": write_type(action)})]
            case Wait(duration_ms=0):
                return [("screenshot", {})]
            case Wait(duration_ms=ms) if self._says("wait") and 0 < ms <= 3_600_000:
                if self.version == "toolset_20260801" and ms % 1000:
                    raise LossyConversion(f"wait takes whole seconds, not {ms} ms")
                return [("wait", {"duration": seconds(ms)})]
            case _:
                raise LossyConversion(f"{self.name} can't say {action}")

    @property
    def _old(self) -> bool:
        return self.version == "20241022"

    def _says(self, name: str) -> bool:
        return bool(name) and not (self._old and name in _SINCE_2025)

    def _size(self, frame: Frame) -> Size:
        return self.picture or (frame.width, frame.height)

    def _pair(self, point: Point, frame: Frame) -> list[int]:
        return list(place_out(point, self._size(frame), frame))

    def _at(self, fields: Fields, frame: Frame, state: State, key: str = "coordinate") -> Point:
        if self._old or not fields.has(key):
            return state.at(fields.name)
        return fields.pair(key, self._size(frame), frame)

    def _moved(self, point: Point, frame: Frame, state: State) -> list[tuple[str, dict[str, Any]]]:
        if state.pointer == point:
            return []
        return [("mouse_move", {"coordinate": self._pair(point, frame)})]

    def _modifiers(self, fields: Fields) -> tuple[str, ...]:
        # The reference implementation of 20250124 calls a click's modifiers `key`.
        word = next((key for key in ("text", "key") if fields.has(key)), "")
        if self._old or not word or not (text := fields.text(word)):
            return ()
        return X_KEYSYMS.read_joined(text)
