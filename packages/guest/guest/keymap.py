"""Canonical key names and characters to X keysyms."""

from __future__ import annotations

from Xlib import XK

from trajectory.keys import canonical_key

_NAMED = {
    "ctrl": "Control_L",
    "shift": "Shift_L",
    "alt": "Alt_L",
    "meta": "Super_L",
    "enter": "Return",
    "tab": "Tab",
    "escape": "Escape",
    "backspace": "BackSpace",
    "delete": "Delete",
    "insert": "Insert",
    "space": "space",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "home": "Home",
    "end": "End",
    "pageup": "Page_Up",
    "pagedown": "Page_Down",
    "capslock": "Caps_Lock",
    "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock",
    "printscreen": "Print",
    "pause": "Pause",
    "menu": "Menu",
}
_CONTROL = {"\n": "Return", "\r": "Return", "\t": "Tab", "\b": "BackSpace", "\x1b": "Escape"}
_UNICODE_KEYSYMS = 0x01000000


def keysym_of_character(character: str) -> int:
    """Return the keysym that enters `character`.

    Raises ValueError for a control character that no key enters.
    """
    if character in _CONTROL:
        return _named(_CONTROL[character])
    code = ord(character)
    if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF:
        return code  # Latin-1 keysyms are the code points
    if code < 0x20 or 0x7F <= code < 0xA0:
        raise ValueError(f"no key enters the control character U+{code:04X}")
    return _UNICODE_KEYSYMS + code


def keysym_of_key(name: str) -> int:
    """Return the keysym of a key of `trajectory.keys`; raises ValueError naming it."""
    key = canonical_key(name)
    if key in _NAMED:
        return _named(_NAMED[key])
    if len(key) == 1:
        return keysym_of_character(key)
    return _named(key.upper())  # f1 .. f24


def _named(name: str) -> int:
    keysym: int = XK.string_to_keysym(name)
    if keysym == 0:
        raise ValueError(f"X has no keysym {name!r}")
    return keysym
