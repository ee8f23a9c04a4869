"""OpenAI's computer tool: `{"type": "click", "button": "left", "x": 1, "y": 2}`, pixels of the picture.

The schema is the SDK's `types/responses/computer_action.py` (3.54). The preview tool has no `keys` and
one `action` a call; the later one holds `keys` and batches `actions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.dialects.frame import Frame
from agent.dialects.grammar import LossyConversion, ParseError, quote
from agent.dialects.tools.fields import Fields, Size, pair_in, place_out
from agent.dialects.tools.keys import SHOUTED
from agent.dialects.tools.scroll import notches
from agent.dialects.tools.state import State, held
from agent.dialects.tools.text import read_type, write_type
from trajectory import Action, Button, Click, Drag, Hotkey, Move, Point, Scroll, Type, Wait

WAIT_MS = 2000
"""`wait` says no time; OpenAI's sample application waits this long."""
SCROLL_PX = 100
"""Pixels in a notch: what Chromium makes of one click of the wheel."""

_BUTTONS: dict[str, Button] = {
    **{"left": "left", "right": "right", "wheel": "middle"},
    **{"back": "back", "forward": "forward"},
}
_WORDS = {button: word for word, button in _BUTTONS.items()}


@dataclass(frozen=True, slots=True)
class OpenAI:
    """`picture` is the size of the screenshot that the model was given; None: that of the frame."""

    name: str = "openai"
    modifiers: bool = True
    picture: Size | None = None
    scroll_px: int = SCROLL_PX
    nearest: bool = False

    def read(self, call: Mapping[str, Any], frame: Frame, state: State) -> tuple[Action, ...]:
        """Read an action, or a whole computer_call with its `action` or `actions`."""
        if call.get("type") != "computer_call":
            return self._read(Fields(str(call.get("type")), call), frame)
        if checks := call.get("pending_safety_checks"):
            raise LossyConversion(f"a person has to confirm this call: {quote(repr(checks))}")
        batch = call.get("actions") or [call.get("action")]
        return tuple(action for one in batch for action in self._read(Fields("action", one), frame))

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Mapping[str, Any], ...]:
        """Write one action object; raises LossyConversion."""
        call = self._write(action, frame)
        return ({"type": call.pop("type"), **call},)

    def _read(self, fields: Fields, frame: Frame) -> tuple[Action, ...]:
        kind = fields.name = fields.text("type")
        actions = self._of(kind, fields, frame)
        fields.end()
        return actions

    def _of(self, kind: str, fields: Fields, frame: Frame) -> tuple[Action, ...]:
        size = self._size(frame)
        match kind:
            case "click" | "double_click":
                button = "left" if kind == "double_click" else fields.text("button")
                if button not in _BUTTONS:
                    raise ParseError(f"click has no button {quote(button)}")
                place, keys = fields.place(size, frame), self._keys(fields)
                count = 2 if kind == "double_click" else 1
                return (Click(*place, _BUTTONS[button], count, keys),)
            case "move":
                return held(self._keys(fields), Move(*fields.place(size, frame)))
            case "drag":
                return held(self._keys(fields), Drag(self._path(fields, frame)))
            case "scroll":
                place = fields.place(size, frame)
                dx, dy = (
                    notches(fields.number(key), self.scroll_px, nearest=self.nearest, what=key)
                    for key in ("scroll_x", "scroll_y")
                )
                return held(self._keys(fields), Scroll(*place, dx, dy))
            case "keypress":
                return (Hotkey(SHOUTED.read(fields.words("keys"))),)
            case "type":
                return (read_type(fields.text("text")),)
            case "wait":
                return (Wait(WAIT_MS),)
            case "screenshot":
                return (Wait(0),)
            case _:
                raise ParseError(f"there is no action called {quote(kind)}")

    def _write(self, action: Action, frame: Frame) -> dict[str, Any]:
        match action:
            case Click(x=x, y=y, button="left", count=2, modifiers=keys):
                return {"type": "double_click", **self._place((x, y), frame), **self._held(keys)}
            case Click(x=x, y=y, button=button, count=1, modifiers=keys):
                place = self._place((x, y), frame)
                return {"type": "click", "button": _WORDS[button], **place, **self._held(keys)}
            case Move(x=x, y=y):
                return {"type": "move", **self._place((x, y), frame)}
            case Drag(path=path, button="left"):
                return {"type": "drag", "path": [self._place(point, frame) for point in path]}
            case Scroll(x=x, y=y, dx=dx, dy=dy):
                px = {"scroll_x": dx * self.scroll_px, "scroll_y": dy * self.scroll_px}
                return {"type": "scroll", **self._place((x, y), frame), **px}
            case Hotkey(keys=keys):
                return {"type": "keypress", "keys": SHOUTED.write(keys)}
            case Type():
                return {"type": "type", "text": write_type(action)}
            case Wait(duration_ms=0):
                return {"type": "screenshot"}
            case Wait(duration_ms=ms) if ms == WAIT_MS:
                return {"type": "wait"}
            case _:
                raise LossyConversion(f"OpenAI's computer tool can't say {action}")

    def _size(self, frame: Frame) -> Size:
        return self.picture or (frame.width, frame.height)

    def _place(self, point: Point, frame: Frame) -> dict[str, int]:
        x, y = place_out(point, self._size(frame), frame)
        return {"x": x, "y": y}

    def _path(self, fields: Fields, frame: Frame) -> tuple[Point, ...]:
        path = fields.need("path")
        if not isinstance(path, Sequence) or isinstance(path, str) or len(path) < 2:
            raise ParseError("drag: path is no list of two points or more")
        size = self._size(frame)
        return tuple(
            Fields("drag: a point", point).place(size, frame)
            if isinstance(point, Mapping)
            else pair_in(point, size, frame, "drag: a point")
            for point in path
        )

    def _keys(self, fields: Fields) -> tuple[str, ...]:
        words = fields.words("keys") if self.modifiers and fields.has("keys") else []
        return SHOUTED.read(words) if words else ()

    def _held(self, keys: tuple[str, ...]) -> dict[str, list[str]]:
        if keys and not self.modifiers:
            raise LossyConversion(f"{self.name} can't hold {keys} during a click")
        return {"keys": SHOUTED.write(keys)} if keys else {}
