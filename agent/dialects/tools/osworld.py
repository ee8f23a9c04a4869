"""OSWorld's computer_13: `{"action_type": "CLICK", "parameters": {"x": 1, "y": 2}}` on 1920x1080.

PRESS is a tap and KEY_DOWN holds, unlike UI-TARS' press. SCROLL turns up with a positive dy. A
pyautogui script (see `pyautogui`) is its other action space. Checked in forks of xlang-ai/OSWorld.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, Size, place_out
from agent.dialects.tools.keys import PYAUTOGUI
from agent.dialects.tools.state import State
from agent.dialects.tools.text import read_type, write_type
from trajectory import (
    Action,
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

SCREEN = (1920, 1080)
WAIT_MS = 2000
"""WAIT says no time: the environment's pause after each action is this long."""

_BUTTONS: tuple[Button, ...] = ("left", "right", "middle")


@dataclass(frozen=True, slots=True)
class Computer13:
    """`screen` is the resolution that the coordinates count."""

    name: str = "osworld"
    screen: Size = SCREEN

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read one action; raises ParseError."""
        outer = Fields("an action", call)
        fields = Fields(outer.text("action_type"), outer.take("parameters") or {})
        outer.end()
        actions = self._of(fields, frame, state)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one action, or a MOVE_TO and one that acts at the pointer; raises LossyConversion."""
        return tuple(
            {"action_type": kind, "parameters": values}
            for kind, values in self._calls(action, frame, state)
        )

    def _of(self, fields: Fields, frame: Frame, state: State) -> tuple[Action, ...]:
        match fields.name:
            case "MOVE_TO":
                return (Move(*fields.place(self.screen, frame)),)
            case "CLICK":
                button = fields.word("button", _BUTTONS, "left")
                count = fields.whole("num_clicks", 1)
                if not 1 <= count <= 3:
                    raise ParseError(f"CLICK: num_clicks is {count}, 1 to 3 is wanted")
                return (Click(*self._at(fields, frame, state), button, count),)
            case "RIGHT_CLICK":
                return (Click(*self._at(fields, frame, state), "right"),)
            case "DOUBLE_CLICK":
                return (Click(*self._at(fields, frame, state), count=2),)
            case "MOUSE_DOWN":
                return (MouseDown(fields.word("button", _BUTTONS, "left")),)
            case "MOUSE_UP":
                return (MouseUp(fields.word("button", _BUTTONS, "left")),)
            case "DRAG_TO":
                return (Drag((state.at("DRAG_TO"), fields.place(self.screen, frame))),)
            case "SCROLL":
                dx, dy = fields.whole("dx", 0), fields.whole("dy", 0)
                return (Scroll(*state.at("SCROLL"), dx, -dy),)
            case "TYPING":
                return (read_type(fields.text("text")),)
            case "PRESS":
                return (Hotkey(PYAUTOGUI.read([fields.text("key")])),)
            case "KEY_DOWN":
                return (KeyDown(*PYAUTOGUI.read([fields.text("key")])),)
            case "KEY_UP":
                return (KeyUp(*PYAUTOGUI.read([fields.text("key")])),)
            case "HOTKEY":
                return (Hotkey(PYAUTOGUI.read(fields.words("keys"))),)
            case "WAIT":
                return (Wait(WAIT_MS),)
            case "DONE":
                return (Finish(),)
            case "FAIL":
                return (Fail(),)
            case _:
                raise ParseError(f"there is no action called {quote(fields.name)}")

    def _calls(
        self, action: Action, frame: Frame, state: State
    ) -> list[tuple[str, dict[str, Any]]]:
        match action:
            case Move(x=x, y=y):
                return [("MOVE_TO", self._place((x, y), frame))]
            case Click(x=x, y=y, button="right", count=1, modifiers=()):
                return [("RIGHT_CLICK", self._place((x, y), frame))]
            case Click(x=x, y=y, button="left", count=2, modifiers=()):
                return [("DOUBLE_CLICK", self._place((x, y), frame))]
            case Click(x=x, y=y, button=button, count=1 | 2 | 3 as count, modifiers=()) if (
                button in _BUTTONS
            ):
                place = self._place((x, y), frame)
                return [("CLICK", {"button": button, **place, "num_clicks": count})]
            case MouseDown(button=button) if button in _BUTTONS:
                return [("MOUSE_DOWN", {"button": button})]
            case MouseUp(button=button) if button in _BUTTONS:
                return [("MOUSE_UP", {"button": button})]
            case Drag(path=(first, last), button="left"):
                return [
                    *self._moved(first, frame, state),
                    ("DRAG_TO", self._place(last, frame)),
                ]
            case Scroll(x=x, y=y, dx=dx, dy=dy):
                return [*self._moved((x, y), frame, state), ("SCROLL", {"dx": dx, "dy": -dy})]
            case Type():
                return [("TYPING", {"text": write_type(action)})]
            case Hotkey(keys=(key,)):
                return [("PRESS", {"key": PYAUTOGUI.write([key])[0]})]
            case Hotkey(keys=keys):
                return [("HOTKEY", {"keys": PYAUTOGUI.write(keys)})]
            case KeyDown(key=key):
                return [("KEY_DOWN", {"key": PYAUTOGUI.write([key])[0]})]
            case KeyUp(key=key):
                return [("KEY_UP", {"key": PYAUTOGUI.write([key])[0]})]
            case Wait(duration_ms=ms) if ms == WAIT_MS:
                return [("WAIT", {})]
            case Finish(answer=""):
                return [("DONE", {})]
            case Fail(reason=""):
                return [("FAIL", {})]
            case _:
                raise LossyConversion(f"computer_13 can't say {action}")

    def _place(self, point: Point, frame: Frame) -> dict[str, Any]:
        x, y = place_out(point, self.screen, frame)
        return {"x": x, "y": y}

    def _at(self, fields: Fields, frame: Frame, state: State) -> Point:
        if not fields.has("x") and not fields.has("y"):
            return state.at(fields.name)
        return fields.place(self.screen, frame)

    def _moved(self, point: Point, frame: Frame, state: State) -> list[tuple[str, dict[str, Any]]]:
        return [] if state.pointer == point else [("MOVE_TO", self._place(point, frame))]
