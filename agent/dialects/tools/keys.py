"""How each dialect spells the keys of `trajectory.keys`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.dialects.grammar import LossyConversion, ParseError, quote
from trajectory.keys import canonical_key

_COMMANDING = frozenset(("ctrl", "alt", "meta"))


@dataclass(frozen=True, slots=True)
class Spelling:
    """Key names of one dialect: `names` from canonical ones, `also` further words that it reads.

    `loud`: a letter beside ctrl, alt or meta is written in upper case and means no shift.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    loud: bool = False

    def read(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the canonical keys of `words`; raises ParseError naming the unknown one."""
        keys = tuple(self._read(word) for word in words)
        if not keys:
            raise ParseError("a combination of no keys")
        if self.loud and _COMMANDING.intersection(keys):
            return tuple(key.lower() if _is_letter(key) else key for key in keys)
        return keys

    def write(self, keys: Sequence[str]) -> list[str]:
        """Return the dialect's words; raises LossyConversion if they don't read back the same."""
        words = [self.names.get(key, key) for key in keys]
        if self.loud and _COMMANDING.intersection(keys):
            words = [word.upper() if _is_letter(word) else word for word in words]
        try:
            same = self.read(words) == tuple(keys)
        except ParseError:
            same = False
        if not same:
            raise LossyConversion(f"the keys {tuple(keys)} don't survive as {words}")
        return words

    def read_joined(self, text: str) -> tuple[str, ...]:
        """Return the keys of 'ctrl+c'. The last separator may be a key: 'ctrl++', '+'."""
        if text.endswith("+"):
            head = text[:-1].rstrip().removesuffix("+")
            return self.read([*_split(head), "+"])
        return self.read(_split(text))

    def write_joined(self, keys: Sequence[str]) -> str:
        """Return keys joined by '+'; raises LossyConversion."""
        text = "+".join(self.write(keys))
        try:
            same = self.read_joined(text) == tuple(keys)
        except ParseError:
            same = False
        if not same:
            raise LossyConversion(f"the keys {tuple(keys)} don't survive as {text!r}")
        return text

    def _read(self, word: str) -> str:
        if len(word) == 1:
            return "space" if word == " " else word
        lower = word.strip().lower()
        for key, name in self.names.items():
            if name.lower() == lower:
                return key
        try:
            return self.also.get(lower) or canonical_key(word)
        except ValueError:
            raise ParseError(f"unknown key {quote(word)}") from None


def _split(text: str) -> list[str]:
    return [word.strip() or word for word in text.split("+")] if text else []


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii() and word.isalpha()


SHOUTED = Spelling(
    {
        **{"ctrl": "CTRL", "shift": "SHIFT", "alt": "ALT", "meta": "CMD", "enter": "ENTER"},
        **{"tab": "TAB", "escape": "ESC", "backspace": "BACKSPACE", "delete": "DELETE"},
        **{"insert": "INSERT", "space": "SPACE", "up": "ARROWUP", "down": "ARROWDOWN"},
        **{"left": "ARROWLEFT", "right": "ARROWRIGHT", "home": "HOME", "end": "END"},
        **{"pageup": "PAGEUP", "pagedown": "PAGEDOWN", "capslock": "CAPSLOCK"},
        **{f"f{n}": f"F{n}" for n in range(1, 25)},
    },
    loud=True,
)
"""OpenAI and Gemini: upper-case words, 'A' beside CTRL is the key and no capital."""

X_KEYSYMS = Spelling(
    {
        **{"meta": "super", "enter": "Return", "tab": "Tab", "escape": "Escape"},
        **{"backspace": "BackSpace", "delete": "Delete", "insert": "Insert", "up": "Up"},
        **{"down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End"},
        **{"pageup": "Page_Up", "pagedown": "Page_Down", "capslock": "Caps_Lock"},
        **{"numlock": "Num_Lock", "scrolllock": "Scroll_Lock", "printscreen": "Print"},
        **{"pause": "Pause", "menu": "Menu", **{f"f{n}": f"F{n}" for n in range(1, 25)}},
    },
    {
        **{"super_l": "meta", "super_r": "meta", "kp_enter": "enter", "minus": "-", "plus": "+"},
        **{"equal": "=", "slash": "/", "backslash": "\\", "period": ".", "comma": ","},
        **{"semicolon": ";", "colon": ":", "apostrophe": "'", "quotedbl": '"', "grave": "`"},
        **{"bracketleft": "[", "bracketright": "]", "braceleft": "{", "braceright": "}"},
        **{"parenleft": "(", "parenright": ")", "less": "<", "greater": ">", "question": "?"},
        **{"exclam": "!", "at": "@", "numbersign": "#", "dollar": "$", "percent": "%"},
        **{"asciicircum": "^", "ampersand": "&", "asterisk": "*", "underscore": "_", "bar": "|"},
        **{"asciitilde": "~"},
    },
)
"""Anthropic: what xdotool knows, 'ctrl+minus' beside 'ctrl+-'."""

PYAUTOGUI = Spelling(
    {"escape": "esc", "meta": "win", "menu": "apps"},
    {
        **{"ctrlleft": "ctrl", "ctrlright": "ctrl", "shiftleft": "shift", "shiftright": "shift"},
        **{"altleft": "alt", "altright": "alt", "winleft": "meta", "winright": "meta"},
        **{"prtsc": "printscreen", "prtscr": "printscreen", "prntscrn": "printscreen"},
    },
)
"""OSWorld's computer_13 and pyautogui scripts."""

PLAYWRIGHT = Spelling(
    {
        **{"ctrl": "Control", "shift": "Shift", "alt": "Alt", "meta": "Meta", "enter": "Enter"},
        **{"tab": "Tab", "escape": "Escape", "backspace": "Backspace", "delete": "Delete"},
        **{"insert": "Insert", "space": "Space", "up": "ArrowUp", "down": "ArrowDown"},
        **{"left": "ArrowLeft", "right": "ArrowRight", "home": "Home", "end": "End"},
        **{
            "pageup": "PageUp",
            "pagedown": "PageDown",
            "capslock": "CapsLock",
            "menu": "ContextMenu",
        },
        **{"numlock": "NumLock", "scrolllock": "ScrollLock", "printscreen": "PrintScreen"},
        **{"pause": "Pause", **{f"f{n}": f"F{n}" for n in range(1, 25)}},
    },
    {"controlormeta": "ctrl"},
)
"""Playwright's key names, of which its MCP server takes one combination at a time."""

PLAIN = Spelling()
"""Canonical names and the words that `trajectory.keys` knows: Qwen."""
