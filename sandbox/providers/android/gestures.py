"""Canonical actions as lines for the device's `input` (AOSP: frameworks/base/cmds/input).

Pure: what can't be said to a phone is a ValueError, before anything is sent.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trajectory import Button, Point
from trajectory.keys import canonical_key

HOME, BACK, RECENTS, WAKEUP = 3, 4, 187, 224
_SWIPE_MS, _DRAG_MS, _SCROLL_MS = 250, 600, 400
_MOST_NOTCHES = 100
_TEXT_BYTES = 400

# KeyEvent.KEYCODE_*; a phone's Home and Back are its own keys, not those of a keyboard.
_NAMED = {
    "home": HOME, "escape": BACK, "enter": 66, "tab": 61, "backspace": 67, "delete": 112,
    "space": 62, "up": 19, "down": 20, "left": 21, "right": 22, "end": 123, "pageup": 92,
    "pagedown": 93, "insert": 124, "menu": 82, "shift": 59, "ctrl": 113, "alt": 57, "meta": 117,
    "capslock": 115, "printscreen": 120, "pause": 121, "numlock": 143, "scrolllock": 116,
    **{f"f{n}": 130 + n for n in range(1, 13)},
}  # fmt: skip
_SIGNS = {
    ",": 55, ".": 56, "`": 68, "-": 69, "=": 70, "[": 71, "]": 72, "\\": 73, ";": 74, "'": 75,
    "/": 76, "@": 77, "+": 81, "*": 17, "#": 18,
}  # fmt: skip


class Screen:
    """The size that points are checked against, in pixels of the frame."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height

    def tap(self, x: int, y: int, *, button: Button, count: int, modifiers: Sequence[str]) -> str:
        self._check(x, y)
        if button != "left" or modifiers:
            raise ValueError("a finger has one button and no modifiers: press long instead")
        return "; ".join([f"input tap {x} {y}"] * count)

    def hold(self, x: int, y: int, ms: int) -> str:
        self._check(x, y)
        return f"input swipe {x} {y} {x} {y} {ms}"

    def drag(self, path: Sequence[Point]) -> str:
        """Two points are one swipe; more need `input motionevent` (Android 11)."""
        for point in path:
            self._check(*point)
        if len(path) == 2:
            (x1, y1), (x2, y2) = path
            return f"input swipe {x1} {y1} {x2} {y2} {_DRAG_MS}"
        names = ["DOWN", *["MOVE"] * (len(path) - 1)]
        lines = [f"input motionevent {n} {x} {y}" for n, (x, y) in zip(names, path, strict=True)]
        return " && ".join([*lines, f"input motionevent UP {path[-1][0]} {path[-1][1]}"])

    def touch(self, kind: str, x: int, y: int) -> str:
        """`kind` is DOWN, MOVE or UP: one finger, moved by hand."""
        self._check(x, y)
        return f"input motionevent {kind} {x} {y}"

    def scroll(self, x: int, y: int, dx: int, dy: int) -> str:
        """Turning the wheel down shows what is below: the finger goes up. A notch is a tenth."""
        self._check(x, y)
        if max(abs(dx), abs(dy)) > _MOST_NOTCHES:
            raise ValueError(f"a scroll is counted in notches, at most {_MOST_NOTCHES}")
        swipes = []
        for notches, along, length in ((dx, 0, self.width), (dy, 1, self.height)):
            way = abs(notches) * length // 10
            while way > 0:
                step = min(way, length * 6 // 10)
                way -= step
                swipes.append(self._swipe((x, y), along, step if notches > 0 else -step))
        return " && ".join(swipes) or "true"

    def _swipe(self, at: Point, along: int, step: int) -> str:
        """Return a swipe by `step` pixels against the axis `along`, centred on `at`, on the screen."""
        length = (self.width, self.height)[along]
        # Not from the very edge: there a swipe means back, or the notifications.
        low, high = length // 20, length - length // 20 - 1
        start = max(low, min(high, at[along] + step // 2))
        end = max(low, min(high, start - step))
        start = max(low, min(high, end + step))
        a, b = [list(at), list(at)]
        a[along], b[along] = start, end
        return f"input swipe {a[0]} {a[1]} {b[0]} {b[1]} {_SCROLL_MS}"

    def _check(self, x: int, y: int) -> None:
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise ValueError(f"({x}, {y}) is outside the screen of {self.width}x{self.height}")


def key(name: str) -> int:
    """Return the KEYCODE of a canonical key; raises ValueError naming it."""
    word = canonical_key(name)
    if word in _NAMED:
        return _NAMED[word]
    if len(word) == 1:
        low = word.lower()
        if low.isascii() and low.isalpha():
            return 29 + ord(low) - ord("a")
        if low.isascii() and low.isdigit():
            return 7 + int(low)
        if low in _SIGNS:
            return _SIGNS[low]
    raise ValueError(f"a phone has no key {name!r}")


def keys(names: Sequence[str]) -> str:
    """Return the line for keys pressed together; Alt+Tab is the list of recent apps."""
    words = [canonical_key(name) for name in names]
    if words == ["alt", "tab"]:
        return f"input keyevent {RECENTS}"
    codes = [str(key(word)) for word in words]
    if len(codes) == 1:
        return f"input keyevent {codes[0]}"
    return f"input keycombination {' '.join(codes)}"  # Android 13


def plain(text: str) -> bool:
    """Whether `input text` can enter `text`: it knows the keys of a US keyboard alone."""
    return all(" " <= c <= "~" or c in "\n\t" for c in text)


def typing(text: str) -> list[str]:
    """Return lines that enter plain `text`, each short enough for one request."""
    lines: list[str] = []
    part = ""

    def flush() -> None:
        nonlocal part
        if part:
            lines.append(f"input text {shlex.quote(part)}")
        part = ""

    for character in text:
        if character in "\n\t":
            flush()
            lines.append(f"input keyevent {66 if character == chr(10) else 61}")
            continue
        # `input` reads %s as a space, so a real one must not come out of two neighbours.
        if (character == "s" and part.endswith("%")) or len(part) >= _TEXT_BYTES:
            flush()
        part += "%s" if character == " " else character
    flush()
    return lines
