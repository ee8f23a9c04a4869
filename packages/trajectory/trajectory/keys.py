"""One canonical set of key names; every dialect and back end maps to and from it.

A printable character is its own name ("a", "/", "é"); everything else is a lower-case word below.
"""

from __future__ import annotations

MODIFIERS = ("ctrl", "shift", "alt", "meta")

NAMED_KEYS = frozenset(
    (
        *MODIFIERS,
        *("enter", "tab", "escape", "backspace", "delete", "insert", "space"),
        *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
        *("capslock", "numlock", "scrolllock", "printscreen", "pause", "menu"),
        *(f"f{n}" for n in range(1, 25)),
    )
)

ALIASES = {
    "control": "ctrl",
    "control_l": "ctrl",
    "control_r": "ctrl",
    "shift_l": "shift",
    "shift_r": "shift",
    "alt_l": "alt",
    "alt_r": "alt",
    "option": "alt",
    "cmd": "meta",
    "command": "meta",
    "super": "meta",
    "win": "meta",
    "windows": "meta",
    "meta_l": "meta",
    "meta_r": "meta",
    "return": "enter",
    "esc": "escape",
    "del": "delete",
    "ins": "insert",
    "back_space": "backspace",
    "spacebar": "space",
    "pgup": "pageup",
    "page_up": "pageup",
    "prior": "pageup",
    "pgdn": "pagedown",
    "page_down": "pagedown",
    "next": "pagedown",
    "arrowup": "up",
    "arrowdown": "down",
    "arrowleft": "left",
    "arrowright": "right",
    "caps_lock": "capslock",
    "num_lock": "numlock",
    "print": "printscreen",
}


def canonical_key(name: str) -> str:
    """Return the canonical name of a key.

    Raises ValueError naming the key if it is neither a single character nor a known word.
    """
    if name == " ":
        return "space"
    if len(name) == 1:
        return name
    word = name.strip().lower()
    word = ALIASES.get(word, word)
    if word in NAMED_KEYS or len(word) == 1:
        return word
    raise ValueError(f"unknown key {name!r}")
