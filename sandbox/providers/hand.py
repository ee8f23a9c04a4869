"""What a hand does over RFB, as canonical actions: keysyms to key names, button bits to presses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from sandbox.screen.rfb import Key, Pointer
from trajectory import Action, Button, KeyDown, KeyUp, MouseDown, MouseUp, Move, Scroll

_BUTTONS: tuple[Button, ...] = ("left", "middle", "right")
_WHEEL = {3: (0, -1), 4: (0, 1), 5: (-1, 0), 6: (1, 0)}
DOUBLE_S, DOUBLE_PX = 0.5, 5
_UNICODE = 0x01000000

_NAMED = {
    0xFF08: "backspace", 0xFF09: "tab", 0xFF0D: "enter", 0xFF13: "pause", 0xFF14: "scrolllock",
    0xFF1B: "escape", 0xFF50: "home", 0xFF51: "left", 0xFF52: "up", 0xFF53: "right",
    0xFF54: "down", 0xFF55: "pageup", 0xFF56: "pagedown", 0xFF57: "end", 0xFF61: "printscreen",
    0xFF63: "insert", 0xFF67: "menu", 0xFF7F: "numlock", 0xFFFF: "delete", 0xFFE5: "capslock",
    0xFFE1: "shift", 0xFFE2: "shift", 0xFFE3: "ctrl", 0xFFE4: "ctrl", 0xFFE7: "meta",
    0xFFE8: "meta", 0xFFE9: "alt", 0xFFEA: "alt", 0xFFEB: "meta", 0xFFEC: "meta", 0x20: "space",
    0xFE20: "tab",
    # The keypad.
    0xFF8D: "enter", 0xFF95: "home", 0xFF96: "left", 0xFF97: "up", 0xFF98: "right",
    0xFF99: "down", 0xFF9A: "pageup", 0xFF9B: "pagedown", 0xFF9C: "end", 0xFF9E: "insert",
    0xFF9F: "delete", 0xFFAA: "*", 0xFFAB: "+", 0xFFAD: "-", 0xFFAE: ".", 0xFFAF: "/",
    **{0xFFB0 + n: str(n) for n in range(10)},
    **{0xFFBD + n: f"f{n}" for n in range(1, 25)},
}  # fmt: skip


class Made(NamedTuple):
    """One action of a hand; `presses` is 2 for the second press of a double click."""

    action: Action
    presses: int = 1


def key_name(keysym: int) -> str:
    """Return the canonical name of the key; "" for one that nothing here has a use for."""
    if keysym in _NAMED:
        return _NAMED[keysym]
    code = keysym - _UNICODE if keysym >= _UNICODE else keysym
    printable = 0x21 <= code <= 0x7E or 0xA0 <= code <= 0xFF or keysym >= _UNICODE
    return chr(code) if printable and code <= 0x10FFFF else ""


class Reader:
    """Turns events into actions; it knows what the hand holds down."""

    def __init__(self) -> None:
        self._pointer = Pointer(-1, -1, 0)
        self._keys: dict[int, str] = {}
        self._press = (0.0, Pointer(-1, -1, 0), 0)

    def read(self, event: Key | Pointer) -> Iterator[Made]:
        """Yield what `event` does."""
        if isinstance(event, Key):
            yield from self._key(event)
        else:
            yield from self._move(event)

    def _key(self, event: Key) -> Iterator[Made]:
        if event.down:
            if name := key_name(event.keysym):
                self._keys[event.keysym] = name
                yield Made(KeyDown(name))
            return
        # Shift may have come or gone since the press: the other case is the same key.
        for keysym in (event.keysym, *_other_case(event.keysym)):
            if name := self._keys.pop(keysym, ""):
                yield Made(KeyUp(name))
                return

    def _move(self, event: Pointer) -> Iterator[Made]:
        before, self._pointer = self._pointer, event
        if (event.x, event.y) != (before.x, before.y):
            yield Made(Move(event.x, event.y))
        for bit, (dx, dy) in _WHEEL.items():
            if event.buttons >> bit & 1 and not before.buttons >> bit & 1:
                yield Made(Scroll(event.x, event.y, dx, dy))
        for bit, button in enumerate(_BUTTONS):
            is_down, was_down = event.buttons >> bit & 1, before.buttons >> bit & 1
            if is_down and not was_down:
                yield Made(MouseDown(button), self._count(event, bit))
            elif was_down and not is_down:
                yield Made(MouseUp(button), self._press[2])

    def _count(self, event: Pointer, bit: int) -> int:
        """Return how many presses at one place this one is the last of: 1, 2 or 3."""
        now = time.monotonic()
        at, where, count = self._press
        near = abs(event.x - where.x) <= DOUBLE_PX and abs(event.y - where.y) <= DOUBLE_PX
        again = near and now - at < DOUBLE_S and where.buttons == 1 << bit and count < 3
        self._press = (now, Pointer(event.x, event.y, 1 << bit), count + 1 if again else 1)
        return self._press[2]


def _other_case(keysym: int) -> tuple[int, ...]:
    name = key_name(keysym)
    other = name.swapcase() if len(name) == 1 else ""
    if len(other) != 1 or other == name:
        return ()
    return (ord(other) if ord(other) <= 0xFF else _UNICODE + ord(other),)
