"""The element dialect: for models that read the screen as a numbered list, `click(element=3)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.dialects.frame import Coordinates, Frame, shown
from agent.dialects.grammar import (
    Call,
    LossyConversion,
    Parsed,
    ParseError,
    quote,
    read_calls,
    split_reply,
    write_call,
)
from agent.dialects.verbs import direction, read_common, read_direction, write_common
from trajectory import Action, Button, Click, Drag, Finish, Point, Scroll, Shell

WAIT_MS = 1000

SPACE = """\
click(element=1)
left_double(element=1)
right_single(element=1)
drag(element=1, to=2)
type(content='xxx')
hotkey(key='ctrl c')
scroll(element=1, direction='down')
wait()
finished(content='')
call_user()"""


@dataclass(frozen=True, slots=True)
class ElementDialect:
    """Reads and writes element numbers; a number means the centre of its element's box."""

    coordinates: Coordinates = "frame"
    name: str = "element"
    space: str = SPACE

    def parse(self, text: str, frame: Frame) -> Parsed:
        """Read a reply; raises ParseError, also for a number that the prompt did not show."""
        thought, body, kind = split_reply(text)
        if kind == "answer":
            return Parsed(thought, Finish(body), body)
        call, raw = read_calls(body)[0]
        return Parsed(thought, _read(call, frame), raw)

    def write(self, action: Action, frame: Frame) -> str:
        """Write a canonical action; raises LossyConversion where no shown element is meant.

        A place becomes the smallest element around it, so it comes back as that one's centre.
        """
        match action:
            case Click(x=x, y=y, modifiers=()) if name := _NAMES.get((action.button, action.count)):
                return write_call(name, element=_number((x, y), frame))
            case Drag(path=(first, last), button="left"):
                return write_call("drag", element=_number(first, frame), to=_number(last, frame))
            case Scroll(x=x, y=y) if (x, y) == frame.centre:
                return write_call("scroll", direction=direction(action))
            case Scroll(x=x, y=y):
                return write_call(
                    "scroll",
                    element=_number((x, y), frame),
                    direction=direction(action),
                )
            case Shell(command=command) if command and action == Shell(command):
                return write_call("execute_bash", command=command)
            case _:
                return write_common(action, WAIT_MS)


_CLICKS: dict[str, tuple[Button, int]] = {
    "click": ("left", 1),
    "left_double": ("left", 2),
    "right_single": ("right", 1),
}
_NAMES = {value: name for name, value in _CLICKS.items()}


def _read(call: Call, frame: Frame) -> Action:
    def centre(key: str) -> Point:
        text = call.take(key)
        if text is None and key == "element" and call.positional:
            text = call.positional[0]
        match = re.fullmatch(r"\s*\[?(\d{1,9})\]?\s*", text or "")
        if match is None:
            raise ParseError(f"{call.name} needs {key}=<number>, not {quote(text or '')}")
        number = int(match.group(1))
        if number not in shown(frame.elements):
            raise ParseError(f"there is no element {number} among {len(frame.elements)}")
        return frame.elements[number - 1].centre

    match call.name:
        case "click" | "left_double" | "right_single":
            button, count = _CLICKS[call.name]
            return Click(*centre("element"), button=button, count=count)
        case "drag":
            return Drag((centre("element"), centre("to")))
        case "scroll":
            at = centre("element") if "element" in call.arguments else frame.centre
            dx, dy = read_direction(call)
            return Scroll(*at, dx=dx, dy=dy)
        case "execute_bash":
            if not (command := call.take("command") or ""):
                raise ParseError("execute_bash needs command")
            return Shell(command)
        case _:
            return read_common(call, call.name, WAIT_MS)


def _number(point: Point, frame: Frame) -> int:
    """Return the shown element at `point`: one with its centre there, else the smallest around it."""
    x, y = point
    best: tuple[bool, int, int] | None = None
    for number in shown(frame.elements):
        element = frame.elements[number - 1]
        left, top, width, height = element.box
        centred = element.centre == point
        if centred or (left <= x < left + width and top <= y < top + height):
            candidate = (not centred, width * height, number)
            best = candidate if best is None else min(best, candidate)
    if best is None:
        raise LossyConversion(f"no listed element is at ({x}, {y})")
    return best[2]
