"""A key that went down: its canonical name, and what it typed."""

from __future__ import annotations

import struct
from typing import NamedTuple

from recorder.capture.x11.xkb import Composing, Keyboard
from trajectory.keys import canonical_key

SHIFT, CONTROL, ALT, META = 0x1, 0x4, 0x8, 0x40
SHORTCUT = CONTROL | ALT | META
_A_LAYOUT = 100  # this many keys change their meaning only when the layout does
# Keysym names that are neither canonical nor an alias of `trajectory.keys`.
_NAMES = {
    "Super_L": "meta", "Super_R": "meta", "Hyper_L": "meta", "Hyper_R": "meta",
    "ISO_Left_Tab": "tab", "KP_Enter": "enter", "KP_Home": "home", "KP_End": "end",
    "KP_Prior": "pageup", "KP_Next": "pagedown", "KP_Up": "up", "KP_Down": "down",
    "KP_Left": "left", "KP_Right": "right", "KP_Insert": "insert", "KP_Delete": "delete",
    "Linefeed": "enter",
}  # fmt: skip


class Key(NamedTuple):
    """`name` is "" for a key that has no canonical name; `committed` is a whole dead-key text."""

    name: str
    text: str
    committed: str


class Keys:
    """Reads keys by the keyboard's map, and by what programs lend its spare keys for a moment."""

    def __init__(self, display: str) -> None:
        self._keyboard = Keyboard(display)
        self._lent: dict[int, int] = {}  # keycode -> keysym
        self._stale = False

    def changed(self, first: int, count: int) -> None:
        """Keycodes `first` and on mean something else; the map is read again when next needed."""
        if not all(code in self._lent for code in range(first, first + count)):
            self._stale = True
            if count > _A_LAYOUT:
                self._lent.clear()

    def lend(self, request: bytes) -> None:
        """Read a ChangeKeyboardMapping request (X11 protocol, request 100).

        A program that types what the layout lacks gives a spare key a meaning, presses it and takes
        the meaning back, faster than anybody could ask for the map: the request itself tells.
        """
        if len(request) < 8 or request[0] != 100:
            return
        count, first, per_code = request[1], request[4], request[5]
        if len(request) < 8 + 4 * count * per_code:
            return
        for n in range(count):
            keysym = struct.unpack_from("=I", request, 8 + 4 * n * per_code)[0] if per_code else 0
            self._lent[first + n] = keysym

    def pressed(self, keycode: int, state: int) -> Key:
        keysym = self._keysym(keycode, state)
        name = self.name(keycode, state)
        if state & SHORTCUT or not keysym:
            return Key(name, "", "")
        composing, text = self._keyboard.compose(keysym)
        if composing is not Composing.NOTHING:
            return Key(name, "", text)
        return Key(name, self._keyboard.character(keysym), "")

    def name(self, keycode: int, state: int) -> str:
        """Return the canonical name of a key, the same whatever modifiers are held: "a", "1", "enter".

        A key of a layout without Latin letters has the name of the same key in one that has them.
        """
        if keycode in self._lent:
            return self._named(self._lent[keycode])
        names = [self._named(k) for k in self._fresh().plain(keycode, state)]
        return next((n for n in names if n and n.isascii()), next(filter(None, names), ""))

    def forget(self) -> None:
        self._keyboard.forget()

    def _keysym(self, keycode: int, state: int) -> int:
        if keycode in self._lent:
            return self._lent[keycode]
        return self._fresh().keysym(keycode, state)

    def _fresh(self) -> Keyboard:
        if self._stale:
            self._stale = False
            self._lent = {code: keysym for code, keysym in self._lent.items() if keysym}
            self._keyboard.reload()
        return self._keyboard

    def _named(self, keysym: int) -> str:
        character = self._keyboard.character(keysym)
        if character:
            return canonical_key(character)
        name = self._keyboard.name(keysym)
        try:
            return _NAMES.get(name) or canonical_key(name)
        except ValueError:
            return ""
