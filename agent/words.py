"""Elements and actions in a few words, for prompts."""

from __future__ import annotations

from agent.dialects import Frame
from trajectory import (
    Action,
    AskUser,
    Click,
    Drag,
    Element,
    Fail,
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

MAX_NAME = 60
"""How many characters of a name or a value a prompt carries."""


def short(text: str, limit: int = MAX_NAME) -> str:
    """Return `text` on one line, cut to `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def element_line(element: Element) -> str:
    """Return an element as `button "ok"` or `textbox "user" value "bob" focused`."""
    line = f'{element.role} "{short(element.name)}"'
    if element.value:
        line += f' value "{short(element.value)}"'
    return line + (" focused" if element.focused else "")


def describe(action: Action, frame: Frame) -> str:
    """Return an action in words, naming the element that it aims at where the frame knows it."""

    def at(point: Point) -> str:
        return _name_at(point, frame)

    match action:
        case Click(x=x, y=y, button=button, count=count, modifiers=modifiers):
            verb = {1: "click", 2: "double click", 3: "triple click"}.get(
                count, f"click {count} times"
            )
            held = "".join(f" with {key}" for key in modifiers)
            return f"{'' if button == 'left' else button + ' '}{verb} {at((x, y))}{held}"
        case Move(x=x, y=y):
            return f"move to {at((x, y))}"
        case LongPress(x=x, y=y):
            return f"long press {at((x, y))}"
        case Drag(path=path):
            return f"drag {at(path[0])} to {at(path[-1])}"
        case Scroll(x=x, y=y, dx=dx, dy=dy):
            words = [("down" if dy > 0 else "up")] if dy else []
            words += [("right" if dx > 0 else "left")] if dx else []
            return f"scroll {' and '.join(words)}".rstrip()
        case Type(text=text, submit=submit):
            return f'type "{short(text)}"' + (" and enter" if submit else "")
        case Hotkey(keys=keys):
            return f"press {' '.join(keys)}"
        case KeyDown(key=key):
            return f"hold {key}"
        case KeyUp(key=key):
            return f"release {key}"
        case MouseDown(button=button):
            return f"hold the {button} button"
        case MouseUp(button=button):
            return f"release the {button} button"
        case Wait():
            return "wait"
        case Navigate(url=url):
            return f"open {short(url)}"
        case NavigateBack():
            return "go back"
        case OpenApp(name=name):
            return f"open the application {short(name)}"
        case Shell(command=command):
            return f"run {short(command)}"
        case Finish(answer=answer):
            return f"finish{': ' + short(answer) if answer else ''}"
        case Fail(reason=reason):
            return f"give up{': ' + short(reason) if reason else ''}"
        case AskUser(question=question):
            return f"ask the user{': ' + short(question) if question else ''}"


def _name_at(point: Point, frame: Frame) -> str:
    x, y = point
    around = [
        element
        for element in frame.elements
        if element.box[0] <= x < element.box[0] + element.box[2]
        and element.box[1] <= y < element.box[1] + element.box[3]
    ]
    if not around:
        return f"({x}, {y})"
    element = min(around, key=lambda e: e.box[2] * e.box[3])
    return f'{element.role} "{short(element.name)}"'
