"""Canonical key names as the DevTools protocol wants them: key, code, virtual key code, text."""

from __future__ import annotations

from typing import NamedTuple

from trajectory.keys import canonical_key


class Key(NamedTuple):
    """One key of a US keyboard; `text` is what it enters, "" for keys that enter nothing."""

    key: str
    code: str
    number: int
    text: str = ""
    location: int = 0


_SHIFTED = dict(
    zip("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", strict=True)
) | dict(zip("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?', strict=True))
_UNSHIFTED = {upper: lower for lower, upper in _SHIFTED.items()}
_PUNCTUATION = {
    "`": ("Backquote", 192), "-": ("Minus", 189), "=": ("Equal", 187),
    "[": ("BracketLeft", 219), "]": ("BracketRight", 221), "\\": ("Backslash", 220),
    ";": ("Semicolon", 186), "'": ("Quote", 222), ",": ("Comma", 188), ".": ("Period", 190),
    "/": ("Slash", 191),
}  # fmt: skip
_NAMED = {
    "ctrl": Key("Control", "ControlLeft", 17, location=1),
    "shift": Key("Shift", "ShiftLeft", 16, location=1),
    "alt": Key("Alt", "AltLeft", 18, location=1),
    "meta": Key("Meta", "MetaLeft", 91, location=1),
    "enter": Key("Enter", "Enter", 13, "\r"),
    "tab": Key("Tab", "Tab", 9),
    "escape": Key("Escape", "Escape", 27),
    "backspace": Key("Backspace", "Backspace", 8),
    "delete": Key("Delete", "Delete", 46),
    "insert": Key("Insert", "Insert", 45),
    "space": Key(" ", "Space", 32, " "),
    "up": Key("ArrowUp", "ArrowUp", 38),
    "down": Key("ArrowDown", "ArrowDown", 40),
    "left": Key("ArrowLeft", "ArrowLeft", 37),
    "right": Key("ArrowRight", "ArrowRight", 39),
    "home": Key("Home", "Home", 36),
    "end": Key("End", "End", 35),
    "pageup": Key("PageUp", "PageUp", 33),
    "pagedown": Key("PageDown", "PageDown", 34),
    "capslock": Key("CapsLock", "CapsLock", 20),
    "numlock": Key("NumLock", "NumLock", 144),
    "scrolllock": Key("ScrollLock", "ScrollLock", 145),
    "printscreen": Key("PrintScreen", "PrintScreen", 44),
    "pause": Key("Pause", "Pause", 19),
    "menu": Key("ContextMenu", "ContextMenu", 93),
    **{f"f{n}": Key(f"F{n}", f"F{n}", 111 + n) for n in range(1, 25)},
}

BITS = {"alt": 1, "ctrl": 2, "meta": 4, "shift": 8}
"""Modifier masks of the protocol's Input domain."""

EDITING = {
    ("ctrl", "a"): "selectAll", ("ctrl", "c"): "copy", ("ctrl", "x"): "cut",
    ("ctrl", "v"): "paste", ("ctrl", "z"): "undo", ("ctrl", "y"): "redo",
    ("ctrl", "shift", "z"): "redo", ("ctrl", "insert"): "copy", ("shift", "insert"): "paste",
    ("shift", "delete"): "cut",
}  # fmt: skip
"""What these keys do where text is edited, in every browser."""


def find(name: str, *, shift: bool = False) -> Key:
    """Return the key called `name`, as it is while Shift is held or not.

    A character that no US key enters has no code: pages see it as `key` and `text`. Raises
    ValueError naming an unknown key.
    """
    name = canonical_key(name)
    if name in _NAMED:
        return _NAMED[name]
    plain = _UNSHIFTED.get(name, name)
    entered = _SHIFTED.get(plain, plain) if shift or name in _UNSHIFTED else plain
    if plain.isascii() and plain.isalpha():
        return Key(entered, f"Key{plain.upper()}", ord(plain.upper()), entered)
    if plain.isascii() and plain.isdigit():
        return Key(entered, f"Digit{plain}", ord(plain), entered)
    code, number = _PUNCTUATION.get(plain, ("", 0))
    return Key(entered, code, number, entered)


def needs_shift(name: str) -> bool:
    """Whether a US keyboard enters the character `name` with Shift."""
    return name in _UNSHIFTED


def editing(held: tuple[str, ...], name: str) -> list[str]:
    """Return the editing command of `name` while the modifiers `held` are down, as a list."""
    chord = (*sorted(held), canonical_key(name).lower())
    command = EDITING.get(chord)
    return [command] if command else []
