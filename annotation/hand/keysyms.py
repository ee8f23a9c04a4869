"""X11 keysyms, as RFB sends them, to canonical keys and to text."""

from __future__ import annotations

_NAMED = {
    0xFF08: "backspace",
    0xFF09: "tab",
    0xFE20: "tab",  # ISO_Left_Tab: what Shift+Tab sends
    0xFF0D: "enter",
    0xFF13: "pause",
    0xFF14: "scrolllock",
    0xFF1B: "escape",
    0xFF50: "home",
    0xFF51: "left",
    0xFF52: "up",
    0xFF53: "right",
    0xFF54: "down",
    0xFF55: "pageup",
    0xFF56: "pagedown",
    0xFF57: "end",
    0xFF61: "printscreen",
    0xFF63: "insert",
    0xFF67: "menu",
    0xFF7F: "numlock",
    0xFF8D: "enter",  # keypad
    0xFF95: "home",
    0xFF96: "left",
    0xFF97: "up",
    0xFF98: "right",
    0xFF99: "down",
    0xFF9A: "pageup",
    0xFF9B: "pagedown",
    0xFF9C: "end",
    0xFF9E: "insert",
    0xFF9F: "delete",
    0xFFE5: "capslock",
    0xFFFF: "delete",
    **{0xFFBE + n: f"f{n + 1}" for n in range(24)},
}

MODIFIERS = {
    0xFFE1: "shift",
    0xFFE2: "shift",
    0xFFE3: "ctrl",
    0xFFE4: "ctrl",
    0xFFE7: "meta",
    0xFFE8: "meta",
    0xFFE9: "alt",
    0xFFEA: "alt",
    0xFFEB: "meta",
    0xFFEC: "meta",
}

# Their effect is already in the keysym of the next key.
LEVEL_SHIFTS = frozenset({0xFE03, 0xFF7E, 0xFE11})

_KEYPAD = {
    0xFFAA: "*",
    0xFFAB: "+",
    0xFFAC: ",",
    0xFFAD: "-",
    0xFFAE: ".",
    0xFFAF: "/",
    0xFFBD: "=",
}


def named_key(keysym: int) -> str | None:
    """Return the canonical name of a key that types nothing; None for one that types."""
    return _NAMED.get(keysym)


def text(keysym: int) -> str | None:
    """Return the character that a keysym types; None if it types none or is not known."""
    if 0x20 <= keysym <= 0x7E or 0xA0 <= keysym <= 0xFF:
        return chr(keysym)
    if 0x0100_0100 <= keysym <= 0x0110_FFFF:
        character = chr(keysym - 0x0100_0000)
        # A browser sends the first half of an emoji so: no character, and nothing that can be kept.
        return None if "\ud800" <= character <= "\udfff" else character
    if 0xFFB0 <= keysym <= 0xFFB9:
        return chr(ord("0") + keysym - 0xFFB0)
    if keysym == 0xFF80:
        return " "
    if keysym == 0x20AC:
        return "€"
    return _KEYPAD.get(keysym)
