"""Qwen's computer_use: `{"name": "computer_use", "arguments": {"action": "left_click", ...}}`.

Qwen3-VL counts places in thousandths, Qwen2.5-VL in pixels of the resized picture. `pixels` of a scroll
are positive for up; hscroll is a call of its own, positive for right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Coordinates, Frame, span
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, milliseconds, place_out, seconds
from agent.dialects.tools.keys import PLAIN
from agent.dialects.tools.scroll import notches
from agent.dialects.tools.state import State
from agent.dialects.tools.text import read_type, write_type
from trajectory import (
    Action,
    AskUser,
    Button,
    Click,
    Drag,
    Fail,
    Finish,
    Hotkey,
    KeyDown,
    KeyUp,
    MouseDown,
    MouseUp,
    Move,
    Point,
    Scroll,
    Type,
    Wait,
)

SCROLL_PX = 100

_CLICKS: dict[str, tuple[Button, int]] = {
    **{"left_click": ("left", 1), "right_click": ("right", 1), "middle_click": ("middle", 1)},
    **{"double_click": ("left", 2), "triple_click": ("left", 3)},
}
_NAMES = {click: name for name, click in _CLICKS.items()}


@dataclass(frozen=True, slots=True)
class Qwen:
    """`scroll_px` of the tool's pixels are a notch."""

    name: str = "qwen"
    coordinates: Coordinates = "thousandth"
    scroll_px: int = SCROLL_PX
    nearest: bool = False

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read one call, or its arguments alone; raises ParseError, LossyConversion."""
        fields = Fields("computer_use", call.get("arguments", call))
        fields.name = fields.text("action")
        actions = self._of(fields, frame, state)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one call, or a mouse_move and a drag from there; raises LossyConversion."""
        return tuple(
            {"name": "computer_use", "arguments": {"action": name, **values}}
            for name, values in self._calls(action, frame, state)
        )

    def _of(self, fields: Fields, frame: Frame, state: State) -> tuple[Action, ...]:
        match fields.name:
            case name if name in _CLICKS:
                button, count = _CLICKS[name]
                place = self._at(fields, frame, state)
                keys = PLAIN.read_joined(fields.text("text")) if fields.has("text") else ()
                return (Click(*place, button, count, keys),)
            case "mouse_move":
                return (Move(*fields.pair("coordinate", span(self.coordinates, frame), frame)),)
            case "left_click_drag":
                start = state.at("left_click_drag")
                end = fields.pair("coordinate", span(self.coordinates, frame), frame)
                return (Drag((start, end)),)
            case "left_mouse_down":
                return (MouseDown(),)
            case "left_mouse_up":
                return (MouseUp(),)
            case "scroll" | "hscroll":
                place = self._at(fields, frame, state)
                amount = notches(
                    fields.number("pixels"),
                    self.scroll_px,
                    nearest=self.nearest,
                    what=fields.name,
                )
                sideways = fields.name == "hscroll"
                return (Scroll(*place, dx=amount) if sideways else Scroll(*place, dy=-amount),)
            case "key":
                return (Hotkey(PLAIN.read(fields.words("keys"))),)
            case "key_down":
                return (KeyDown(*_single(fields)),)
            case "key_up":
                return (KeyUp(*_single(fields)),)
            case "type":
                return (read_type(fields.text("text")),)
            case "wait":
                return (Wait(milliseconds(fields.number("time"), "wait")),)
            case "terminate":
                good = fields.word("status", ("success", "failure")) == "success"
                return (Finish() if good else Fail(),)
            case "answer":
                return (Finish(fields.text("text")),)
            case "call_user":
                return (AskUser(fields.text("text", "")),)
            case _:
                raise ParseError(f"there is no action called {quote(fields.name)}")

    def _calls(
        self, action: Action, frame: Frame, state: State
    ) -> list[tuple[str, dict[str, Any]]]:
        match action:
            case Click(x=x, y=y, modifiers=keys) if name := _NAMES.get(
                (action.button, action.count)
            ):
                text = {"text": PLAIN.write_joined(keys)} if keys else {}
                return [(name, self._place((x, y), frame) | text)]
            case Move(x=x, y=y):
                return [("mouse_move", self._place((x, y), frame))]
            case Drag(path=(first, last), button="left"):
                drag = ("left_click_drag", self._place(last, frame))
                if state.pointer == first:
                    return [drag]
                return [("mouse_move", self._place(first, frame)), drag]
            case MouseDown(button="left"):
                return [("left_mouse_down", {})]
            case MouseUp(button="left"):
                return [("left_mouse_up", {})]
            case Scroll(x=x, y=y, dx=0, dy=dy):
                return [("scroll", {"pixels": -dy * self.scroll_px} | self._place((x, y), frame))]
            case Scroll(x=x, y=y, dx=dx, dy=0):
                return [("hscroll", {"pixels": dx * self.scroll_px} | self._place((x, y), frame))]
            case Hotkey(keys=keys):
                return [("key", {"keys": PLAIN.write(keys)})]
            case KeyDown(key=key):
                return [("key_down", {"keys": PLAIN.write([key])})]
            case KeyUp(key=key):
                return [("key_up", {"keys": PLAIN.write([key])})]
            case Type():
                return [("type", {"text": write_type(action)})]
            case Wait(duration_ms=ms) if 0 <= ms <= 3_600_000:
                return [("wait", {"time": seconds(ms)})]
            case Finish(answer=""):
                return [("terminate", {"status": "success"})]
            case Finish(answer=answer):
                return [("answer", {"text": answer})]
            case Fail(reason=""):
                return [("terminate", {"status": "failure"})]
            case AskUser(question=question):
                return [("call_user", {"text": question} if question else {})]
            case _:
                raise LossyConversion(f"computer_use can't say {action}")

    def _place(self, point: Point, frame: Frame) -> dict[str, Any]:
        return {"coordinate": list(place_out(point, span(self.coordinates, frame), frame))}

    def _at(self, fields: Fields, frame: Frame, state: State) -> Point:
        if not fields.has("coordinate"):
            return state.at(fields.name)
        return fields.pair("coordinate", span(self.coordinates, frame), frame)


def _single(fields: Fields) -> tuple[str, ...]:
    keys = PLAIN.read(fields.words("keys"))
    if len(keys) != 1:
        raise ParseError(f"{fields.name} takes one key, not {len(keys)}")
    return keys
