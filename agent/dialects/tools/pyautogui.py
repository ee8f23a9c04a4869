"""pyautogui scripts, OSWorld's other action space: `{"code": "pyautogui.click(1, 2)"}`.

A script is read by its syntax tree and never run: statements that call one known function with
literal arguments, nothing else. How long a movement takes and how fast keys follow each other is no
part of an action, so `duration`, `interval` and `tween` are read over. `scroll` turns up with a
positive number. WAIT, DONE and FAIL stand alone, as in OSWorld.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, Size, place_out, seconds
from agent.dialects.tools.keys import PYAUTOGUI
from agent.dialects.tools.script import PACE, WORDS, of_call
from agent.dialects.tools.state import State
from agent.dialects.tools.text import write_type
from trajectory import (
    Action,
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

MAX_SCRIPT = 20_000
MAX_CALLS = 200

_ENDS: dict[str, Action] = {"DONE": Finish(), "FAIL": Fail(), "WAIT": Wait(2000)}
_BUTTONS = ("left", "middle", "right")


@dataclass(frozen=True, slots=True)
class Pyautogui:
    """`screen` is the resolution that the script counts; None: that of the frame."""

    name: str = "pyautogui"
    screen: Size | None = None

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read a whole script; raises ParseError naming the statement that is no plain call."""
        fields = Fields("a script", call)
        code = fields.text("code").strip()
        fields.end()
        if code in _ENDS:
            return (_ENDS[code],)
        actions: list[Action] = []
        for name, values in _calls(code):
            new = of_call(name, Fields(name, values), self._size(frame), frame, state)
            state = state.after(*new)
            actions += new
        if not actions:
            raise ParseError(f"the script calls nothing: {quote(code)}")
        return tuple(actions)

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write a script of one or two statements; raises LossyConversion."""
        return ({"code": self._code(action, frame, state)},)

    def _code(self, action: Action, frame: Frame, state: State) -> str:
        match action:
            case Move(x=x, y=y):
                return f"pyautogui.moveTo({self._xy((x, y), frame)})"
            case Click(x=x, y=y, button=button, count=1 | 2 | 3 as count, modifiers=()) if (
                button in _BUTTONS
            ):
                at = self._xy((x, y), frame)
                return f"pyautogui.click({at}, clicks={count}, button={button!r})"
            case MouseDown(button=button) if button in _BUTTONS:
                return f"pyautogui.mouseDown(button={button!r})"
            case MouseUp(button=button) if button in _BUTTONS:
                return f"pyautogui.mouseUp(button={button!r})"
            case Drag(path=(first, last), button=button) if button in _BUTTONS:
                end = self._xy(last, frame)
                drag = f"pyautogui.dragTo({end}, button={button!r})"
                if state.pointer == first:
                    return drag
                return f"pyautogui.moveTo({self._xy(first, frame)})\n{drag}"
            case Scroll(x=x, y=y, dx=0, dy=dy):
                return f"pyautogui.scroll({-dy}, {self._xy((x, y), frame)})"
            case Scroll(x=x, y=y, dx=dx, dy=0):
                return f"pyautogui.hscroll({dx}, {self._xy((x, y), frame)})"
            case Hotkey(keys=keys):
                return f"pyautogui.hotkey({', '.join(map(repr, PYAUTOGUI.write(keys)))})"
            case KeyDown(key=key):
                return f"pyautogui.keyDown({PYAUTOGUI.write([key])[0]!r})"
            case KeyUp(key=key):
                return f"pyautogui.keyUp({PYAUTOGUI.write([key])[0]!r})"
            case Type():
                return f"pyautogui.write({write_type(action)!r})"
            case Wait(duration_ms=ms) if 0 <= ms <= 3_600_000:
                return f"time.sleep({seconds(ms)})"
            case Finish(answer=""):
                return "DONE"
            case Fail(reason=""):
                return "FAIL"
            case _:
                raise LossyConversion(f"pyautogui can't say {action}")

    def _size(self, frame: Frame) -> Size:
        return self.screen or (frame.width, frame.height)

    def _xy(self, point: Point, frame: Frame) -> str:
        return "{}, {}".format(*place_out(point, self._size(frame), frame))


def _calls(code: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a script with their arguments by name; raises ParseError."""
    if len(code) > MAX_SCRIPT:
        raise ParseError(f"a script has at most {MAX_SCRIPT} characters, not {len(code)}")
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"the script is no Python: {error}") from None
    if len(body) > MAX_CALLS:
        raise ParseError(f"a script has at most {MAX_CALLS} statements, not {len(body)}")
    calls = []
    for statement in body:
        match statement:
            case ast.Import(names=names) if all(
                alias.name in ("pyautogui", "time") and alias.asname is None for alias in names
            ):
                continue
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="pyautogui" | "time" as module), attr=attr)
                ) as called
            ):
                name = "sleep" if module == "time" and attr == "sleep" else attr
                if module == "time" and name != "sleep":
                    raise ParseError(f"there is no time.{attr} here")
                calls.append((name, _arguments(name, called)))
            case _:
                said = ast.get_source_segment(code, statement) or code
                raise ParseError(f"not a plain call of pyautogui: {quote(said)}")
    return calls


def _arguments(name: str, call: ast.Call) -> dict[str, Any]:
    if name not in WORDS:
        raise ParseError(f"there is no pyautogui.{name}")
    try:
        values = [ast.literal_eval(argument) for argument in call.args]
        named = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ParseError(f"{name}: only literal arguments are read") from None
    words = WORDS[name]
    if words == ("*",):  # hotkey('ctrl', 'c') and hotkey(['ctrl', 'c'])
        keys = list(values[0]) if values and isinstance(values[0], list | tuple) else values
        arguments: dict[str, Any] = {"keys": keys}
    elif len(values) > len(words):
        raise ParseError(f"{name} takes {len(words)} arguments, not {len(values)}")
    else:
        arguments = dict(zip(words, values, strict=False))
        if words[:1] == ("x",) and isinstance(arguments.get("x"), list | tuple):
            pair = arguments.pop("x")  # click((1, 2))
            if len(pair) != 2 or "y" in arguments:
                raise ParseError(f"{name}: {pair} is no place")
            arguments |= {"x": pair[0], "y": pair[1]}
    for word, value in named.items():
        if word is None or word in arguments:
            raise ParseError(f"{name} has {word or '**'} twice")
        arguments[word] = value
    return {word: value for word, value in arguments.items() if word not in PACE}
