"""Gemini 2.5 computer use and 3 Flash, for browsers: `{"name": "click_at", "args": {...}}` on 0..999.

`type_text_at` clicks, clears and presses Enter unless told not to. A scroll's magnitude counts on
the same grid of 1000 (google-gemini/computer-use-preview).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields
from agent.dialects.tools.gemini import GRID, arguments, place_of
from agent.dialects.tools.keys import PLAYWRIGHT
from agent.dialects.tools.scroll import notches, one_way
from agent.dialects.tools.state import State
from agent.dialects.verbs import DIRECTIONS
from trajectory import (
    Action,
    Click,
    Drag,
    Hotkey,
    Move,
    Navigate,
    NavigateBack,
    OpenApp,
    Scroll,
    Type,
    Wait,
)

SCROLL_UNITS = 100
"""Units of the grid in a notch: the default magnitude of 800 is 8 notches."""
SCROLL_DEFAULT = 800
BROWSER = "browser"


@dataclass(frozen=True, slots=True)
class GeminiBrowser:
    """`scroll_units` thousandths of the screen are a notch."""

    name: str = "gemini-browser"
    scroll_units: int = SCROLL_UNITS
    nearest: bool = False

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read one function call; raises ParseError, LossyConversion."""
        fields = arguments(call)
        actions = self._of(fields, frame)
        fields.end()
        return actions

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one function call; raises LossyConversion."""
        name, values = self._call(action, frame)
        return ({"name": name, "args": values},)

    def _of(self, fields: Fields, frame: Frame) -> tuple[Action, ...]:
        match fields.name:
            case "click_at":
                return (Click(*fields.place(GRID, frame)),)
            case "hover_at":
                return (Move(*fields.place(GRID, frame)),)
            case "type_text_at":
                click = Click(*fields.place(GRID, frame))
                typed = Type(fields.text("text"), fields.flag("press_enter", True))
                if not fields.flag("clear_before_typing", True):
                    return click, typed
                return click, Hotkey(("ctrl", "a")), Hotkey(("delete",)), typed
            case "scroll_at":
                place = fields.place(GRID, frame)
                return (self._scroll(place, fields.number("magnitude", SCROLL_DEFAULT), fields),)
            case "scroll_document":
                return (self._scroll(frame.centre, SCROLL_DEFAULT, fields),)
            case "drag_and_drop":
                start = fields.place(GRID, frame)
                return (Drag((start, fields.place(GRID, frame, "destination_x", "destination_y"))),)
            case "key_combination":
                return (Hotkey(PLAYWRIGHT.read_joined(fields.text("keys"))),)
            case "wait_5_seconds":
                return (Wait(5000),)
            case "navigate":
                return (Navigate(fields.text("url")),)
            case "go_back":
                return (NavigateBack(),)
            case "open_web_browser":
                return (OpenApp(BROWSER),)
            case "go_forward" | "search":
                raise LossyConversion(f"no canonical action says {fields.name}")
            case _:
                raise ParseError(f"there is no function called {quote(fields.name)}")

    def _scroll(self, place: tuple[int, int], magnitude: float, fields: Fields) -> Scroll:
        dx, dy = DIRECTIONS[fields.word("direction", tuple(DIRECTIONS))]
        amount = notches(magnitude, self.scroll_units, nearest=self.nearest, what="scroll_at")
        if amount <= 0:
            raise ParseError("scroll_at: a magnitude above 0 is wanted")
        return Scroll(*place, dx * amount, dy * amount)

    def _call(self, action: Action, frame: Frame) -> tuple[str, dict[str, Any]]:
        match action:
            case Click(x=x, y=y, button="left", count=1, modifiers=()):
                return "click_at", place_of((x, y), frame)
            case Move(x=x, y=y):
                return "hover_at", place_of((x, y), frame)
            case Scroll(x=x, y=y):
                direction, amount = one_way(action)
                way = {"direction": direction, "magnitude": amount * self.scroll_units}
                return "scroll_at", place_of((x, y), frame) | way
            case Drag(path=(first, last), button="left"):
                end = place_of(last, frame, "destination_x", "destination_y")
                return "drag_and_drop", place_of(first, frame) | end
            case Hotkey(keys=keys):
                return "key_combination", {"keys": PLAYWRIGHT.write_joined(keys)}
            case Wait(duration_ms=5000):
                return "wait_5_seconds", {}
            case Navigate(url=url):
                return "navigate", {"url": url}
            case NavigateBack():
                return "go_back", {}
            case OpenApp(name=name) if name == BROWSER:
                return "open_web_browser", {}
            case _:
                raise LossyConversion(f"Gemini's browser functions can't say {action}")
