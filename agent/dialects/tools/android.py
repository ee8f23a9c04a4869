"""android_world's JSON actions: `{"action_type": "click", "x": 1, "y": 2}` or with an `index`.

An index counts the elements of the frame from 0. A scroll moves what is seen in its direction; a swipe
crosses the screen as android_world's actuation does it, which sends `left` to the right. `input_text`
presses Enter afterwards, because android_world does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, place_out
from agent.dialects.tools.scroll import one_way
from agent.dialects.tools.state import State
from agent.dialects.verbs import DIRECTIONS, SCROLL_NOTCHES
from trajectory import (
    Action,
    Click,
    Drag,
    Fail,
    Finish,
    Hotkey,
    LongPress,
    NavigateBack,
    OpenApp,
    Point,
    Scroll,
    Type,
    Wait,
)

WAIT_MS = 1000
LONG_PRESS_MS = 1000


@dataclass(frozen=True, slots=True)
class Android:
    """Writes places in pixels, or with `by_index` the number of the element whose centre is meant."""

    name: str = "android"
    by_index: bool = False

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read one action; raises ParseError, LossyConversion."""
        fields = Fields("an action", call)
        fields.name = fields.text("action_type")
        actions = self._of(fields, frame)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one action; raises LossyConversion."""
        kind, values = self._call(action, frame)
        return ({"action_type": kind, **values},)

    def _of(self, fields: Fields, frame: Frame) -> tuple[Action, ...]:
        match fields.name:
            case "click":
                return (Click(*_place(fields, frame)),)
            case "double_tap":
                return (Click(*_place(fields, frame), count=2),)
            case "long_press":
                return (LongPress(*_place(fields, frame), LONG_PRESS_MS),)
            case "input_text":
                if fields.flag("clear_text", False):
                    raise LossyConversion("no canonical action says clear_text")
                focus = any(map(fields.has, ("index", "x", "y")))
                click = (Click(*_place(fields, frame)),) if focus else ()
                return (*click, Type(fields.text("text"), submit=True))
            case "scroll":
                place = _place(fields, frame) if fields.has("index") else frame.centre
                dx, dy = DIRECTIONS[fields.word("direction", tuple(DIRECTIONS))]
                return (Scroll(*place, dx * SCROLL_NOTCHES, dy * SCROLL_NOTCHES),)
            case "swipe":
                return (Drag(_swipes(frame)[fields.word("direction", tuple(DIRECTIONS))]),)
            case "navigate_back":
                return (NavigateBack(),)
            case "navigate_home":
                return (Hotkey(("home",)),)
            case "keyboard_enter":
                return (Hotkey(("enter",)),)
            case "open_app":
                return (OpenApp(fields.text("app_name")),)
            case "wait":
                return (Wait(WAIT_MS),)
            case "answer":
                return (Finish(fields.text("text")),)
            case "status":
                status = fields.word("goal_status", ("complete", "infeasible"))
                return (Finish() if status == "complete" else Fail(),)
            case "unknown":
                raise LossyConversion("`unknown` says that the model meant nothing")
            case _:
                raise ParseError(f"there is no action called {quote(fields.name)}")

    def _call(self, action: Action, frame: Frame) -> tuple[str, dict[str, Any]]:
        match action:
            case Click(x=x, y=y, button="left", count=1, modifiers=()):
                return "click", self._target((x, y), frame)
            case Click(x=x, y=y, button="left", count=2, modifiers=()):
                return "double_tap", self._target((x, y), frame)
            case LongPress(x=x, y=y, duration_ms=ms) if ms == LONG_PRESS_MS:
                return "long_press", self._target((x, y), frame)
            case Type(text=text, submit=True):
                return "input_text", {"text": text}
            case Scroll(x=x, y=y):
                direction, amount = one_way(action)
                if amount != SCROLL_NOTCHES:
                    raise LossyConversion(f"a scroll is {SCROLL_NOTCHES} notches, not {amount}")
                if (x, y) == frame.centre:
                    return "scroll", {"direction": direction}
                return "scroll", {"direction": direction, "index": _index((x, y), frame)}
            case Drag(path=path, button="left"):
                for direction, across in _swipes(frame).items():
                    if path == across:
                        return "swipe", {"direction": direction}
                raise LossyConversion(f"a swipe crosses the whole screen, {path} does not")
            case NavigateBack():
                return "navigate_back", {}
            case Hotkey(keys=("home",)):
                return "navigate_home", {}
            case Hotkey(keys=("enter",)):
                return "keyboard_enter", {}
            case OpenApp(name=name):
                return "open_app", {"app_name": name}
            case Wait(duration_ms=ms) if ms == WAIT_MS:
                return "wait", {}
            case Finish(answer=""):
                return "status", {"goal_status": "complete"}
            case Finish(answer=answer):
                return "answer", {"text": answer}
            case Fail(reason=""):
                return "status", {"goal_status": "infeasible"}
            case _:
                raise LossyConversion(f"android_world can't say {action}")

    def _target(self, point: Point, frame: Frame) -> dict[str, Any]:
        if self.by_index:
            return {"index": _index(point, frame)}
        x, y = place_out(point, (frame.width, frame.height), frame)
        return {"x": x, "y": y}


def _place(fields: Fields, frame: Frame) -> Point:
    if not fields.has("index"):
        return fields.place((frame.width, frame.height), frame)
    if fields.has("x") or fields.has("y"):
        raise ParseError(f"{fields.name} takes an index or x and y, never both")
    index = fields.whole("index")
    if not 0 <= index < len(frame.elements):
        raise ParseError(f"there is no element {index} among {len(frame.elements)}")
    return frame.elements[index].centre


def _index(point: Point, frame: Frame) -> int:
    for index, element in enumerate(frame.elements):
        if element.centre == point:
            return index
    raise LossyConversion(f"no element has its centre at {point}")


def _swipes(frame: Frame) -> dict[str, tuple[Point, Point]]:
    """Return the finger's way for each direction; source: android_world/env/actuation.py."""
    (x, y), right, bottom = frame.centre, frame.width - 1, frame.height - 1
    return {
        "down": ((x, 0), (x, bottom)),
        "up": ((x, bottom), (x, 0)),
        "left": ((0, y), (right, y)),
        "right": ((right, y), (0, y)),
    }
