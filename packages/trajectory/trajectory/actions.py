"""The canonical actions: one closed union, in pixels of the frame that the actor saw.

Coordinates are integers with the origin at the top left of the frame; 0 is a coordinate.
A dialect (what one model family writes) converts to and from these in `agent.dialects`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Button: TypeAlias = Literal["left", "middle", "right", "back", "forward"]
BUTTONS: tuple[Button, ...] = get_args(Button)

Point: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Click:
    """Press and release `button` at (x, y) `count` times while `modifiers` are held."""

    x: int
    y: int
    button: Button = "left"
    count: int = 1
    modifiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Move the pointer without pressing anything."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class MouseDown:
    """Press `button` where the pointer is and keep it down."""

    button: Button = "left"


@dataclass(frozen=True, slots=True)
class MouseUp:
    """Let go of `button` where the pointer is."""

    button: Button = "left"


@dataclass(frozen=True, slots=True)
class Drag:
    """Press at the first point of `path`, follow it, let go at the last; at least two points."""

    path: tuple[Point, ...]
    button: Button = "left"


@dataclass(frozen=True, slots=True)
class Scroll:
    """Turn the wheel over (x, y): `dx`, `dy` in notches, positive is right and down."""

    x: int
    y: int
    dx: int = 0
    dy: int = 0


@dataclass(frozen=True, slots=True)
class LongPress:
    """Hold the left button (or a finger) on (x, y) for `duration_ms`."""

    x: int
    y: int
    duration_ms: int = 1000


@dataclass(frozen=True, slots=True)
class KeyDown:
    """Press one key of `trajectory.keys` and keep it down."""

    key: str


@dataclass(frozen=True, slots=True)
class KeyUp:
    """Let go of one key."""

    key: str


@dataclass(frozen=True, slots=True)
class Hotkey:
    """Press `keys` in order and let go in reverse; a single key is a tap."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Type:
    """Enter `text` as committed text (any Unicode); `submit` presses Enter once afterwards."""

    text: str
    submit: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for `duration_ms`."""

    duration_ms: int = 1000


@dataclass(frozen=True, slots=True)
class Navigate:
    """Open `url` in the browser in front."""

    url: str


@dataclass(frozen=True, slots=True)
class NavigateBack:
    """Go one page back in the browser in front."""


@dataclass(frozen=True, slots=True)
class OpenApp:
    """Start or raise the application called `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Run `command` in the computer's shell (a GUI-SDK tool); its output is in the next observation."""

    command: str
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Finish:
    """Say that the task is done; `answer` where the task asks for one."""

    answer: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Say that the task can't be done, and why."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class AskUser:
    """Hand the turn to the person at the desk."""

    question: str = ""


Action: TypeAlias = (
    Click
    | Move
    | MouseDown
    | MouseUp
    | Drag
    | Scroll
    | LongPress
    | KeyDown
    | KeyUp
    | Hotkey
    | Type
    | Wait
    | Navigate
    | NavigateBack
    | OpenApp
    | Shell
    | Finish
    | Fail
    | AskUser
)

ACTION_TYPES: dict[str, type[Action]] = {
    "click": Click,
    "move": Move,
    "mouse_down": MouseDown,
    "mouse_up": MouseUp,
    "drag": Drag,
    "scroll": Scroll,
    "long_press": LongPress,
    "key_down": KeyDown,
    "key_up": KeyUp,
    "hotkey": Hotkey,
    "type": Type,
    "wait": Wait,
    "navigate": Navigate,
    "navigate_back": NavigateBack,
    "open_app": OpenApp,
    "shell": Shell,
    "finish": Finish,
    "fail": Fail,
    "ask_user": AskUser,
}
ACTION_NAMES: dict[type[Action], str] = {cls: name for name, cls in ACTION_TYPES.items()}


def target(action: Action) -> Point | None:
    """Return the place that `action` aims at, for overlays and guards; None where it has no place."""
    match action:
        case Click(x=x, y=y) | Move(x=x, y=y) | Scroll(x=x, y=y) | LongPress(x=x, y=y):
            return (x, y)
        case Drag(path=path):
            return path[0]
        case _:
            return None


def is_terminal(action: Action) -> bool:
    """Whether the episode ends with `action`."""
    return isinstance(action, Finish | Fail)
