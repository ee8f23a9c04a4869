"""The functions that pixel-pointing models call (UI-TARS 1, 1.5, 2 and their relatives), both ways.

The box and the point dialect differ in how they write a place; what they can say is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.dialects.frame import Coordinates, Frame, to_frame
from agent.dialects.grammar import Call, LossyConversion, ParseError, quote, write_call
from agent.dialects.keys import read_key, read_keys, write_keys
from trajectory import (
    BUTTONS,
    Action,
    AskUser,
    Button,
    Click,
    Drag,
    Finish,
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
    Shell,
    Type,
    Wait,
)

SCROLL_NOTCHES = 5
"""A model that says only a direction means this many notches."""
WAIT_MS = 5000
"""What `wait()` means to the UI-TARS family."""
MAX_SECONDS = 3600

DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}

ALIASES = {
    "left_single": "click",
    "left_click": "click",
    "double_click": "left_double",
    "right_click": "right_single",
    "hover": "move_to",
    "mouse_move": "move_to",
    "select": "drag",
    "swipe": "drag",
    "keydown": "press",
    "keyup": "release",
    "bash": "execute_bash",
}

START = ("start_box", "point", "start_point", "box", "position")
END = ("end_box", "end_point")


def read_action(call: Call, frame: Frame, coordinates: Coordinates) -> tuple[Action, ...]:
    """Return what `call` asks for: one action, or two where it moves and presses at once.

    Raises ParseError naming the function, the argument or the number that can't be read.
    """
    name = ALIASES.get(call.name.lower(), call.name.lower())

    def place(*names: str) -> Point:
        text = call.take(*names)
        if text is None and names == START and call.positional:
            text = call.positional[0]
        if text is None:
            raise ParseError(f"{call.name} says no {names[0]}")
        return read_place(text, frame, coordinates)

    match name:
        case "click" | "left_double" | "right_single" | "middle_click":
            button: Button = {"right_single": "right", "middle_click": "middle"}.get(name, "left")  # type: ignore[assignment]
            return (
                Click(
                    *place(*START),
                    button=button,
                    count=2 if name == "left_double" else 1,
                ),
            )
        case "move_to":
            return (Move(*place(*START)),)
        case "drag":
            return (Drag((place(*START), place(*END))),)
        case "long_press":
            time = call.take("time")
            ms = LongPress(0, 0).duration_ms if not time else read_seconds(time)
            return (LongPress(*place(*START), duration_ms=ms),)
        case "mouse_down" | "mouse_up":
            turn = (MouseDown if name == "mouse_down" else MouseUp)(_button(call))
            return (Move(*place(*START)), turn) if call.take(*START) else (turn,)
        case "scroll":
            at = place(*START) if call.take(*START) else frame.centre
            dx, dy = read_direction(call)
            return (Scroll(*at, dx=dx, dy=dy),)
        case "press":
            return (KeyDown(read_key(_text(call, "key"))),)
        case "release":
            return (KeyUp(read_key(_text(call, "key"))),)
        case "navigate":
            return (Navigate(_text(call, "content", "url")),)
        case "navigate_back":
            return (NavigateBack(),)
        case "open_app":
            return (OpenApp(_text(call, "app_name", "name")),)
        case "execute_bash":
            return (Shell(_text(call, "command")),)
        case _:
            return (read_common(call, name, WAIT_MS),)


def read_common(call: Call, name: str, wait_ms: int) -> Action:
    """Return the action of a function without a place; every dialect has these."""
    match name:
        case "type":
            text = _text(call, "content", "text")
            submit = text.endswith("\n")
            return Type(text[:-1] if submit else text, submit=submit)
        case "hotkey":
            return Hotkey(read_keys(_text(call, "key", "keys")))
        case "wait":
            time = call.take("time")
            return Wait(read_seconds(time) if time else wait_ms)
        case "finished":
            return Finish(call.take("content") or "".join(call.positional[:1]))
        case "call_user":
            return AskUser(call.take("content") or "")
        case _:
            raise ParseError(f"there is no action called {quote(call.name)}")


def write_common(action: Action, wait_ms: int) -> str:
    """Return the text of an action without a place; raises LossyConversion."""
    match action:
        case Type(text=text, submit=submit):
            if not submit and (not text or text.endswith("\n")):
                raise LossyConversion(f"type can't say {text!r} without a submit")
            return write_call("type", content=text + ("\n" if submit else ""))
        case Hotkey(keys=keys):
            return write_call("hotkey", key=write_keys(keys))
        case Wait(duration_ms=ms) if ms == wait_ms:
            return write_call("wait")
        case Finish(answer=answer):
            return write_call("finished", content=answer) if answer else write_call("finished")
        case AskUser(question=""):
            return write_call("call_user")
        case _:
            raise LossyConversion(f"this dialect can't say {action}")


def write_action(action: Action, keys: tuple[str, str, str], box: Callable[[Point], str]) -> str:
    """Return the text of `action`; `keys` name a place, a start and an end; `box` writes a place.

    Raises LossyConversion.
    """
    at, start, end = keys
    match action:
        case Click(x=x, y=y, modifiers=()) if (name := _click_name(action)) is not None:
            return write_call(name, **{at: box((x, y))})
        case Move(x=x, y=y):
            return write_call("move_to", **{at: box((x, y))})
        case Drag(path=(first, last), button="left"):
            return write_call("drag", **{start: box(first), end: box(last)})
        case LongPress(x=x, y=y, duration_ms=1000):
            return write_call("long_press", **{at: box((x, y))})
        case Scroll(x=x, y=y):
            return write_call("scroll", **{at: box((x, y)), "direction": direction(action)})
        case MouseDown(button="left"):
            return write_call("mouse_down")
        case MouseUp(button="left"):
            return write_call("mouse_up")
        case KeyDown(key=key):
            return write_call("press", key=write_keys((key,)))
        case KeyUp(key=key):
            return write_call("release", key=write_keys((key,)))
        case Navigate(url=url) if url:
            return write_call("navigate", content=url)
        case NavigateBack():
            return write_call("navigate_back")
        case OpenApp(name=app) if app:
            return write_call("open_app", app_name=app)
        case _:
            return write_common(action, WAIT_MS)


def direction(action: Scroll) -> str:
    """Return the direction of a scroll; raises LossyConversion if a direction is not all of it."""
    for name, (dx, dy) in DIRECTIONS.items():
        if (action.dx, action.dy) == (dx * SCROLL_NOTCHES, dy * SCROLL_NOTCHES):
            return name
    raise LossyConversion(
        f"a scroll of ({action.dx}, {action.dy}) notches is not {SCROLL_NOTCHES} in one direction"
    )


def read_direction(call: Call) -> tuple[int, int]:
    """Return (dx, dy) in notches; raises ParseError."""
    word = (call.take("direction") or "").strip().lower()
    if word not in DIRECTIONS:
        raise ParseError(
            f"{call.name} needs a direction (up, down, left, right), not {quote(word)}"
        )
    dx, dy = DIRECTIONS[word]
    return dx * SCROLL_NOTCHES, dy * SCROLL_NOTCHES


_TOKENS = re.compile(r"<\|box_(?:start|end)\|>|</?(?:point|bbox|box)>")
_NUMBERS = re.compile(r"[\s(\[]*-?\d+(?:\.\d+)?(?:[\s,()\[\]]+-?\d+(?:\.\d+)?)*[\s)\]]*")


def read_place(text: str, frame: Frame, coordinates: Coordinates) -> Point:
    """Return the pixel of `(x,y)`, `[x1, y1, x2, y2]` (its centre), `<point>x y</point>` and so on.

    Raises ParseError if there are not two or four numbers, or if they lie outside the frame.
    """
    bare = _TOKENS.sub(" ", text)
    if not _NUMBERS.fullmatch(bare):
        raise ParseError(f"no coordinates in {quote(text)}")
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", bare)]
    if len(numbers) not in (2, 4):
        raise ParseError(f"{len(numbers)} coordinates in {quote(text)}, 2 or 4 are wanted")
    x, y = (numbers[0] + numbers[-2]) / 2, (numbers[1] + numbers[-1]) / 2
    try:
        return to_frame(x, y, coordinates, frame)
    except ValueError as error:
        raise ParseError(str(error)) from None


def read_seconds(text: str) -> int:
    """Return the milliseconds of a number of seconds, as '2', '0.5' or '2s'.

    Raises ParseError, above an hour too.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*s?\s*", text)
    if match is None or float(match.group(1)) > MAX_SECONDS:
        raise ParseError(f"{quote(text)} is not a number of seconds up to {MAX_SECONDS}")
    return round(float(match.group(1)) * 1000)


def _click_name(action: Click) -> str | None:
    match action.button, action.count:
        case "left", 1:
            return "click"
        case "left", 2:
            return "left_double"
        case "right", 1:
            return "right_single"
        case "middle", 1:
            return "middle_click"
    return None


def _button(call: Call) -> Button:
    word = (call.take("button") or "left").strip().lower()
    for button in BUTTONS:
        if button == word:
            return button
    raise ParseError(f"{call.name} has no button {quote(word)}")


def _text(call: Call, *names: str) -> str:
    text = call.take(*names)
    if text is None and call.positional:
        text = call.positional[0]
    if not text:
        raise ParseError(f"{call.name} needs {names[0]}")
    return text
