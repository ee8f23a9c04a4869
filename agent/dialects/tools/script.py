"""What each function of pyautogui means; `pyautogui` reads the script around them."""

from __future__ import annotations

from agent.dialects.frame import Frame
from agent.dialects.grammar import ParseError
from agent.dialects.tools.fields import Fields, Size, milliseconds, place_in
from agent.dialects.tools.keys import PYAUTOGUI
from agent.dialects.tools.state import State
from agent.dialects.tools.text import read_type
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
    Point,
    Scroll,
    Wait,
)

PACE = ("duration", "interval", "tween", "pause", "_pause", "logScreenshot")
"""Arguments that say how fast, and not what."""
MAX_PRESSES = 100

_CLICK = ("x", "y", "clicks", "interval", "button", "duration", "tween")
_CLICKED = ("x", "y", "interval", "button", "duration", "tween")
_ONE = ("x", "y", "interval", "duration", "tween")
_TO = ("x", "y", "duration", "tween", "button")
_BUTTON = ("x", "y", "button")
_BUTTONS: tuple[Button, ...] = ("left", "middle", "right")

WORDS: dict[str, tuple[str, ...]] = {
    **{"click": _CLICK, "doubleClick": _CLICKED, "tripleClick": _CLICKED},
    **{"leftClick": _ONE, "rightClick": _ONE, "middleClick": _ONE},
    **{"moveTo": _ONE[:2] + _ONE[3:], "move": ("xOffset", "yOffset", "duration", "tween")},
    **{"moveRel": ("xOffset", "yOffset", "duration", "tween"), "dragTo": _TO},
    **{"drag": ("xOffset", "yOffset", "duration", "tween", "button")},
    **{"dragRel": ("xOffset", "yOffset", "duration", "tween", "button")},
    **{"mouseDown": _BUTTON, "mouseUp": _BUTTON},
    **{"scroll": ("clicks", "x", "y"), "vscroll": ("clicks", "x", "y")},
    **{"hscroll": ("clicks", "x", "y"), "write": ("message", "interval")},
    **{"typewrite": ("message", "interval"), "press": ("keys", "presses", "interval")},
    **{"keyDown": ("key",), "keyUp": ("key",), "hotkey": ("*",), "sleep": ("seconds",)},
}
"""The arguments of each function in their order; ("*",) takes any number of keys."""

_COUNTS = {"doubleClick": 2, "tripleClick": 3}
_SIDES: dict[str, Button] = {"rightClick": "right", "middleClick": "middle"}


def of_call(
    name: str, fields: Fields, size: Size, frame: Frame, state: State
) -> tuple[Action, ...]:
    """Return what pyautogui.`name` does; raises ParseError."""
    actions = _of(name, fields, size, frame, state)
    fields.end()
    return actions


def _of(name: str, fields: Fields, size: Size, frame: Frame, state: State) -> tuple[Action, ...]:
    def place() -> Point:
        if not fields.has("x") and not fields.has("y"):
            return state.at(name)
        return fields.place(size, frame)

    def moved() -> Point:
        """Return the place that lies so far from the pointer."""
        x, y = state.at(name)
        right = fields.number("xOffset", 0) * frame.width / size[0]
        down = fields.number("yOffset", 0) * frame.height / size[1]
        return place_in(x + right, y + down, (frame.width, frame.height), frame, name)

    def button() -> Button:
        return fields.word("button", _BUTTONS, "left")

    match name:
        case "click":
            count = fields.whole("clicks", 1)
            if not 1 <= count <= 3:
                raise ParseError(f"click: clicks is {count}, 1 to 3 is wanted")
            return (Click(*place(), button(), count),)
        case "doubleClick" | "tripleClick":
            return (Click(*place(), button(), _COUNTS[name]),)
        case "leftClick" | "rightClick" | "middleClick":
            return (Click(*place(), _SIDES.get(name, "left")),)
        case "moveTo":
            return (Move(*place()),)
        case "move" | "moveRel":
            return (Move(*moved()),)
        case "dragTo":
            return (Drag((state.at(name), place()), button()),)
        case "drag" | "dragRel":
            return (Drag((state.at(name), moved()), button()),)
        case "mouseDown" | "mouseUp":
            turn = MouseDown if name == "mouseDown" else MouseUp
            to = (Move(*place()),) if fields.has("x") or fields.has("y") else ()
            return (*to, turn(button()))
        case "scroll" | "vscroll":
            return (Scroll(*place(), dy=-fields.whole("clicks")),)
        case "hscroll":
            return (Scroll(*place(), dx=fields.whole("clicks")),)
        case "write" | "typewrite":
            return _written(fields)
        case "press":
            presses = fields.whole("presses", 1)
            if not 1 <= presses <= MAX_PRESSES:
                raise ParseError(f"press: presses is {presses}, 1 to {MAX_PRESSES} is wanted")
            return _taps(fields, "keys") * presses
        case "keyDown":
            return (KeyDown(*PYAUTOGUI.read([fields.text("key")])),)
        case "keyUp":
            return (KeyUp(*PYAUTOGUI.read([fields.text("key")])),)
        case "hotkey":
            return (Hotkey(PYAUTOGUI.read(fields.words("keys"))),)
        case _:
            return (Wait(milliseconds(fields.number("seconds"), "sleep")),)


def _written(fields: Fields) -> tuple[Action, ...]:
    message = fields.need("message")
    if isinstance(message, str):
        return (read_type(message),)
    fields = Fields("write", {"keys": message})  # a list: each word is a key
    return _taps(fields, "keys")


def _taps(fields: Fields, key: str) -> tuple[Action, ...]:
    value = fields.need(key)
    words = [value] if isinstance(value, str) else Fields(fields.name, {key: value}).words(key)
    if not words:
        raise ParseError(f"{fields.name}: no key")
    return tuple(Hotkey(PYAUTOGUI.read([word])) for word in words)
