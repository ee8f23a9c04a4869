"""Which keys an input method took, and what they became: told by what the widget says was put in.

A key that types puts its own text in. Where text comes in that no key had, while keys wait that have
put nothing in, an input method turned those into it. What a program puts in by itself (a completion,
a paste, an undo) finds no key that waits, or is plain ASCII that the keys don't spell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trajectory.keys import MODIFIERS
from trajectory.recording import Committed

_GAP_S = 15.0  # choosing among candidates takes no longer, as in trajectory.hand.keyboard
_SPAN_S = 40.0  # a key further back is written as it was pressed
_KEYS, _TEXT, _PARTS = 400, 200, 20
_AFTER = 3  # keys that choose among candidates: Space, a number, Enter
_ARRIVES_S = 0.15  # the text of a key is told within this time of the text before it
_BEFORE = ((0x1100, 0x11FF), (0x3040, 0x30FF), (0x3100, 0x318F), (0xAC00, 0xD7AF))
"""Hangul, Kana, Bopomofo: what stands in the widget while it is still being composed."""


class _Key(NamedTuple):
    t: float
    name: str
    text: str


class _Part(NamedTuple):
    t: float
    text: str


class Composing:
    """Follows one widget; `shows_preedit` for one whose text holds what is still being composed."""

    def __init__(self, shows_preedit: bool) -> None:
        self._shows_preedit = shows_preedit
        self._waiting: list[_Key] = []  # put nothing in by now
        self._done: list[_Key] = []  # put their own text in
        self._taken: list[_Key] = []
        self._parts: list[_Part] = []  # put in by no key

    @property
    def due(self) -> float | None:
        """When `settle` has something to say; None while nothing is open."""
        return self._parts[0].t + _ARRIVES_S if self._parts else None

    def pressed(self, t: float, name: str, text: str, *, shortcut: bool) -> list[Committed]:
        """Take a key that went down; a shortcut ends what was going on, but for one with Space."""
        if name in MODIFIERS:
            return []
        told = self.settle() if self.due is not None and t >= self.due else []
        last = self._waiting[-1].t if self._waiting else t
        if (shortcut and name != "space") or t - last > _GAP_S:
            self.forget()
        if not shortcut:
            self._waiting = [*self._waiting[1 - _KEYS :], _Key(t, name, text)]
        return told

    def inserted(self, t: float, text: str) -> None:
        """Take text that came into the widget, told at `t`."""
        if not text or len(text) > _TEXT or len(self._parts) >= _PARTS:
            return
        if self._parts or not self._explained(text):
            self._parts.append(_Part(t, text))

    def deleted(self, text: str) -> None:
        """Take text that went away: what keys had put in may have been a first form of it."""
        if self._waiting and self._waiting[-1].name in ("backspace", "delete"):
            self._waiting.pop()
            self._done = self._done[: max(0, len(self._done) - len(text))]
            return
        spelt = [c for c in text if not c.isspace() and c != "'"]
        keys = sorted([*self._done, *self._waiting])
        texts = [key.text for key in keys]
        for after in range(min(_AFTER, len(keys)) + 1):
            end = len(keys) - after
            if spelt and texts[max(0, end - len(spelt)) : end] == spelt:
                self._done, self._waiting = keys[: end - len(spelt)], keys[end - len(spelt) :]
                return

    def settle(self) -> list[Committed]:
        """Say what was put in, each at the key that did it."""
        parts, self._parts = self._parts, []
        told = []
        for n, part in enumerate(parts):
            if not self._explained(part.text):  # a key may be told after what it put in
                after = parts[n + 1].text if n + 1 < len(parts) else ""
                told += self._made(part, after)
        return told

    def _made(self, part: _Part, after: str) -> list[Committed]:
        """Say what keys became `part`, which came right before the text `after`."""
        keys = [key for key in self._waiting if key.t <= part.t]
        text = part.text
        if len(text) > 1 and text.endswith("\n") and keys and keys[-1].name == "enter":
            text, after = text.rstrip("\n"), "\n"
        later = [key for key in self._waiting if key.t > part.t]
        # A key that ended it, and then put itself in.
        if keys and _own(keys[-1]) == after and not any(_own(key) == after for key in later):
            keys.pop()
        since = next((n for n, key in enumerate(keys) if key.text), None)
        if since is None:
            again = any(text == key.text for key in self._taken)
            return [Committed(part.t, text)] if again else []
        keys = keys[since:]
        composed = self._composed(text, keys)
        if composed or not self._shows_preedit:
            self._waiting = [key for key in self._waiting if key.t > keys[-1].t]
        if not composed or keys[-1].t - keys[0].t > _SPAN_S:
            return []
        self._taken = keys[-2:]
        return [Committed(keys[-1].t, text, keys[0].t)]

    def forget(self) -> None:
        """The focus moved, or something was done that puts text in by itself."""
        self._waiting, self._done, self._taken, self._parts = [], [], [], []

    def _explained(self, text: str) -> bool:
        """Whether a key that waits put this in; the keys before it do nothing here."""
        for n in range(len(self._waiting) - 1, -1, -1):
            if _own(self._waiting[n]) == text:
                self._done = [*self._done[-_KEYS:], self._waiting[n]]
                self._waiting = self._waiting[n + 1 :]
                return True
        return False

    def _composed(self, text: str, keys: Sequence[_Key]) -> bool:
        if text.isascii():
            spelt = "".join(key.text for key in keys)
            return not self._shows_preedit and len(text) > 1 and spelt.strip() == text.strip()
        if not self._shows_preedit:
            return True
        return not any(
            (c.isascii() and c.isalpha()) or any(low <= ord(c) <= high for low, high in _BEFORE)
            for c in text
        )


def _own(key: _Key) -> str:
    return "\n" if key.name == "enter" else key.text
