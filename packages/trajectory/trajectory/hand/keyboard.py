"""The keys of a hand: text, hotkeys, and the modifiers that go with what the mouse does."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from trajectory.actions import Hotkey, KeyDown, KeyUp, Type
from trajectory.hand.gestures import Steps
from trajectory.keys import MODIFIERS, NAMED_KEYS

TYPING_GAP_S = 2.0
COMPOSING_GAP_S = 15.0  # choosing among the candidates of an input method takes longer
CHORD_S = 2.0  # a modifier that was held longer before its key is not where the hotkey began
HELD_LIMIT_S = 120.0  # a modifier that stays down longer, unused, has lost its release

# Their effect is already in the text of the next key.
LOCKS = frozenset({"capslock", "numlock", "scrolllock"})


@dataclass
class Keyboard:
    """What the keys are in the middle of.

    A character key without text is taken by an input method, or is a dead key: it begins the
    typing, and what it adds comes with the committed text.
    """

    steps: Steps
    dropped: Counter[str]
    _held: dict[str, float] = field(default_factory=dict)  # modifiers, in order, since when
    _used: set[str] = field(default_factory=set)  # of those, what took part in something
    _text: str = ""
    _from: float | None = None
    _at: float = -math.inf
    _composing: int = 0  # character keys that an input method has taken since it last committed
    _tabs: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)

    @property
    def typing(self) -> bool:
        return self._from is not None

    def moments(self) -> list[float]:
        unused = [t for key, t in self._held.items() if key not in self._used]
        return [
            *unused,
            *([self._from] if self._from is not None else []),
            *(t for t, _ in self._tabs),
        ]

    def use(self, t: float) -> tuple[tuple[str, ...], float]:
        """Return the modifiers that go with an action at `t`, and when that action began."""
        fresh = [
            at for key, at in self._held.items() if key not in self._used and t - at <= CHORD_S
        ]
        self._used.update(self._held)
        return tuple(self._held), min([t, *fresh])

    def pressed(self, t: float, key: str, text: str) -> bool:
        """Take a key that went down or repeats; False where it does nothing by itself."""
        if key in MODIFIERS:
            self._held.setdefault(key, t)
            return False
        if key in LOCKS:
            return False
        text = "" if any(c < " " or "\x7f" <= c < "\xa0" for c in text) else text
        self._expire_typing(t)
        if text and self._types(key, text):
            self._add(t, text)
            self._composing = 0
        elif not self._strong() and self._composed(t, key):
            pass
        elif key == "backspace" and self._text and not self._strong():
            self._text, self._at = self._text[:-1], t
        elif key or text:
            self._hotkey(t, _name(key or text))
        else:
            self.dropped["a key without a name"] += 1
            return False
        return True

    def released(self, t: float, key: str) -> bool:
        """Let go of a key; True where that is an action: Meta or Alt alone open menus."""
        if key not in self._held:
            return False
        since = self._held.pop(key)
        self._end_tabs(t)
        alone = key not in self._used and key in ("meta", "alt") and not self._held
        self._used.update(self._held)  # two together that did nothing: neither was alone
        self._used.discard(key)
        if alone:
            self.end_typing()
            self.steps.put(Hotkey((key,)), since, t)
        return alone

    def committed(self, t: float, text: str) -> None:
        self._expire_typing(t)
        self._used.update(self._held)
        self._composing = 0
        self._add(t, text)

    def expire(self, t: float) -> None:
        self._expire_typing(t)
        for key, since in list(self._held.items()):
            if key not in self._used and t - since > HELD_LIMIT_S:
                self.dropped[f"{key} was never let go"] += 1
                del self._held[key]

    def end_typing(self) -> None:
        """End the text: something else began."""
        self._end_tabs(self._at)
        if self._from is not None and self._text:
            self.steps.put(Type(self._text), self._from, self._at)
        self._text, self._from, self._composing = "", None, 0

    def drop(self) -> list[str]:
        """Let what is held come to nothing, a choice among windows too; return what had no use yet."""
        unused = [key for key in self._held if key not in self._used]
        lost = [*unused, *("tab" for _ in self._tabs)]
        self._tabs.clear()
        self._held.clear()
        return lost

    def close(self) -> None:
        self.end_typing()
        self._held.clear()
        self._used.clear()

    def _expire_typing(self, t: float) -> None:
        gap = COMPOSING_GAP_S if self._composing else TYPING_GAP_S
        if self._from is not None and t - self._at > gap:
            self.end_typing()

    def _strong(self) -> list[str]:
        return [key for key in self._held if key != "shift"]

    def _types(self, key: str, text: str) -> bool:
        """Whether a key with the held modifiers types; AltGr is Ctrl+Alt on Windows, Alt on a Mac."""
        strong = set(self._strong())
        if strong == {"alt"}:
            return not text.isascii()
        if strong == {"ctrl", "alt"}:
            return text.lower() != key.lower() and not (text.isascii() and text.isalnum())
        return not strong

    def _composed(self, t: float, key: str) -> bool:
        """Whether an input method takes this key, which has no text."""
        if len(key) == 1 or (key == "space" and self._composing):
            self._composing += 1
        elif not self._composing or key not in NAMED_KEYS:
            return False
        elif key == "backspace":
            self._composing -= 1
        elif key == "escape":
            self._composing = 0
        self._add(t, "")
        return True

    def _hotkey(self, t: float, key: str) -> None:
        if key == "tab" and {"alt", "meta"} & set(self._held):
            if not self._tabs:
                self.end_typing()
            modifiers, began = self.use(t)
            self._tabs.append((t if self._tabs else began, modifiers))
            self._at = t
            return
        self.end_typing()
        modifiers, began = self.use(t)
        self.steps.put(Hotkey((*modifiers, key)), began, t)

    def _end_tabs(self, t: float) -> None:
        """Put Alt+Tab, or Alt held over several Tabs, which goes further than Alt+Tab twice."""
        tabs, self._tabs = self._tabs, []
        if not tabs:
            return
        began, modifiers = tabs[0]
        if len(tabs) == 1:
            self.steps.put(Hotkey((*modifiers, "tab")), began, self._at)
            return
        holding = tuple(key for key in modifiers if key != "shift")
        for key in holding:
            self.steps.put(KeyDown(key), began, began)
        for at, keys in tabs:
            tap = ("shift", "tab") if "shift" in keys else ("tab",)
            self.steps.put(Hotkey(tap), at, at)
        for key in reversed(holding):
            self.steps.put(KeyUp(key), tabs[-1][0], t)

    def _add(self, t: float, text: str) -> None:
        if self._from is None:
            self._end_tabs(t)
            self._from = t
        self._used.update(self._held)
        self._text += text
        self._at = t


def _name(key: str) -> str:
    """Return the name of a key in a hotkey: the key itself, not the capital that Shift makes of it."""
    return "space" if key == " " else key.lower()
