"""Canonical actions as commands of the protocol's Input domain. Pure but for what is held down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from math import ceil, hypot
from typing import Any, NamedTuple

from sandbox.providers.browser.keys import BITS, editing, find, needs_shift
from trajectory import (
    Action,
    Button,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Point,
    Scroll,
    Type,
)
from trajectory.keys import MODIFIERS, canonical_key

NOTCH_PX = 100
MAX_NOTCHES = 100
DRAG_STEP_PX = 12
_BUTTON_BITS: dict[Button, int] = {"left": 1, "right": 2, "middle": 4, "back": 8, "forward": 16}


class Command(NamedTuple):
    """One command to send. `frame`: the page gets it with a frame; `pause_ms`: time passes before.

    `heard_later`: it is answered before the page's script hears of it; the next frame brings it.
    `clipboard`: it copies, cuts or pastes; a paste is not left to the browser.
    """

    method: str
    params: dict[str, Any]
    frame: bool = False
    pause_ms: int = 0
    heard_later: bool = False
    clipboard: str = ""


@dataclass(slots=True)
class Hands:
    """Where the pointer is and what is held down; `commands` turns the next action into input."""

    width: int
    height: int
    pointer: Point = (-1, -1)  # not on the page yet
    buttons: list[Button] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def commands(self, action: Action) -> list[Command] | None:
        """Return the input of `action`; None if it is not made of mouse and keys.

        Raises ValueError for a place outside the page or an unknown key, before anything is sent.
        """
        match action:
            case Click(x, y, button, count, modifiers):
                return self._click(self._inside((x, y)), button, count, modifiers)
            case Move(x, y):
                return [self._moved(self._inside((x, y)))._replace(frame=True)]
            case MouseDown(button):
                return [self._press(button)]
            case MouseUp(button):
                return [self._release(button)]
            case Drag(path, button):
                return self._drag([self._inside(point) for point in path], button)
            case Scroll(x, y, dx, dy):
                return self._scroll(self._inside((x, y)), dx, dy)
            case LongPress(x, y, duration_ms):
                moved = self._moved(self._inside((x, y)))
                release = [self._press("left"), self._release("left")]
                return [moved, release[0], release[1]._replace(pause_ms=duration_ms)]
            case KeyDown(key):
                return [self._key(key, down=True)]
            case KeyUp(key):
                return [self._key(key, down=False)]
            case Hotkey(keys):
                return list(self._hotkey(keys))
            case Type(text, submit):
                return list(self._type(text, submit))
            case _:
                return None

    def let_go(self) -> list[Command]:
        """Release everything that is still down."""
        return [self._release(button) for button in list(self.buttons)] + [
            self._key(key, down=False) for key in reversed(self.keys)
        ]

    # -- mouse -------------------------------------------------------------------------------

    def _inside(self, point: Point) -> Point:
        x, y = point
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise ValueError(f"({x}, {y}) is outside the page of {self.width}x{self.height}")
        return point

    def _mouse(self, kind: str, **more: object) -> Command:
        x, y = self.pointer
        held = sum(_BUTTON_BITS[button] for button in self.buttons)
        params = {"type": kind, "x": x, "y": y, "modifiers": self._mask(), "buttons": held, **more}
        return Command("Input.dispatchMouseEvent", params)

    def _moved(self, point: Point) -> Command:
        self.pointer = point
        return self._mouse("mouseMoved", button=self.buttons[-1] if self.buttons else "none")

    def _press(self, button: Button, count: int = 1) -> Command:
        if button not in self.buttons:
            self.buttons.append(button)
        return self._mouse("mousePressed", button=button, clickCount=count)

    def _release(self, button: Button, count: int = 1) -> Command:
        if button in self.buttons:
            self.buttons.remove(button)
        return self._mouse("mouseReleased", button=button, clickCount=count)

    def _click(
        self, point: Point, button: Button, count: int, modifiers: Sequence[str]
    ) -> list[Command]:
        fresh = [name for name in map(canonical_key, modifiers) if name not in self.keys]
        sent = [self._key(name, down=True) for name in fresh]
        if point != self.pointer:
            sent.append(self._moved(point))
        for n in range(1, count + 1):
            sent += [self._press(button, n), self._release(button, n)]
        return sent + [self._key(name, down=False) for name in reversed(fresh)]

    def _drag(self, path: Sequence[Point], button: Button) -> list[Command]:
        if len(path) < 2:
            raise ValueError("a drag needs at least two points")
        sent = [self._moved(path[0]), self._press(button)]
        for start, end in pairwise(path):
            # A frame after each: pages answer a drag only once it has moved.
            sent += [self._moved(point)._replace(frame=True) for point in _between(start, end)]
        return [*sent, self._release(button)]

    def _scroll(self, point: Point, dx: int, dy: int) -> list[Command]:
        if max(abs(dx), abs(dy)) > MAX_NOTCHES:
            raise ValueError(f"a scroll is counted in notches, at most {MAX_NOTCHES}")
        moved = self._moved(point)._replace(frame=True)
        wheel = {"deltaX": dx * NOTCH_PX, "deltaY": dy * NOTCH_PX}
        turned = self._mouse("mouseWheel", **wheel)._replace(frame=True, heard_later=True)
        return [moved, turned]

    # -- keyboard ----------------------------------------------------------------------------

    def _mask(self) -> int:
        return sum(BITS[name] for name in MODIFIERS if name in self.keys)

    def _key(self, name: str, *, down: bool) -> Command:
        name = canonical_key(name)
        held = tuple(key for key in self.keys if key in MODIFIERS)
        key = find(name, shift="shift" in held)
        again = name in self.keys
        if down and not again:
            self.keys.append(name)
        if not down and again:
            self.keys.remove(name)
        params: dict[str, Any] = {
            "type": "keyUp", "modifiers": self._mask(), "key": key.key, "code": key.code,
            "windowsVirtualKeyCode": key.number, "location": key.location,
        }  # fmt: skip
        if down:
            command = editing(held, name)
            # With Ctrl, Alt or Meta held a key enters nothing.
            text = "" if {"ctrl", "alt", "meta"} & set(held) else key.text
            params |= {"type": "keyDown" if text else "rawKeyDown", "autoRepeat": again}
            params |= {"text": text, "unmodifiedText": text} if text else {}
            clip = next((name for name in command if name in ("copy", "cut", "paste")), "")
            # A command that changes nothing, in place of the shell's own paste.
            params |= {"commands": ["setMark"] if clip == "paste" else command} if command else {}
            return Command("Input.dispatchKeyEvent", params, clipboard=clip)
        return Command("Input.dispatchKeyEvent", params)

    def _tap(self, name: str) -> Iterator[Command]:
        yield self._key(name, down=True)
        yield self._key(name, down=False)

    def _hotkey(self, names: Sequence[str]) -> Iterator[Command]:
        for name in (known := [canonical_key(name) for name in names]):
            find(name)
        for name in known:
            yield self._key(name, down=True)
        for name in reversed(known):
            yield self._key(name, down=False)

    def _type(self, text: str, submit: bool) -> Iterator[Command]:
        for on_keyboard, group in groupby(text.replace("\r\n", "\n"), _has_key):
            if not on_keyboard:  # together: a family of emoji is one text
                yield Command("Input.insertText", {"text": "".join(group)})
                continue
            for character in group:
                yield from self._enter(character)
        if submit:
            yield from self._tap("enter")

    def _enter(self, character: str) -> Iterator[Command]:
        shift = needs_shift(character) and "shift" not in self.keys
        if shift:
            yield self._key("shift", down=True)
        yield from self._tap({"\n": "enter", "\t": "tab"}.get(character, character))
        if shift:
            yield self._key("shift", down=False)


def _has_key(character: str) -> bool:
    return character in "\n\t" or bool(find(character).code)


def _between(start: Point, end: Point) -> Iterator[Point]:
    """Yield points on the way from `start` to `end`, DRAG_STEP_PX apart, `end` last."""
    steps = max(1, ceil(hypot(end[0] - start[0], end[1] - start[1]) / DRAG_STEP_PX))
    for n in range(1, steps + 1):
        yield (
            round(start[0] + (end[0] - start[0]) * n / steps),
            round(start[1] + (end[1] - start[1]) * n / steps),
        )
