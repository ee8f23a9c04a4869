"""Events of known actions, with the jitter of real hands: what `trajectory.hand` is measured on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.reduction_mouse import Mouse
from trajectory import Action, Click, Hotkey, KeyDown, KeyUp, Move, Type, Wait
from trajectory import recording as rec

WORDS = [
    *("the", "quick", "brown", "fox", "jumps", "over", "13", "lazy", "dogs;"),
    *("größe", "café", "naïve", "Ünïcode", "Здравствуй"),
]
CJK = ["日本語", "你好世界", "한국어", "漢字かな", "東京"]
DEAD = "éèêñôüã"
CHORDS = [("ctrl", "s"), ("ctrl", "shift", "t"), ("alt", "f4"), ("ctrl", "alt", "delete"), ("meta", "d"), ("ctrl", "a")]  # fmt: skip
TAPS = ["enter", "tab", "escape", "f5", "down", "pageup", "delete", "home"]


@dataclass
class Gesture:
    """What was meant: the actions, between `began` and `ended`."""

    kind: str
    began: float
    ended: float
    actions: list[Action]


class Person(Mouse):
    """A mouse with keys; every gesture is a method that returns the actions it means."""

    # -- the keys --------------------------------------------------------------------------------

    def write(self, text: str, *, locked: bool = False) -> None:
        """Type as people do: Shift for capitals, and the next key before the last is up."""
        pending = ""
        for character in text:
            shift = character.isupper() and not locked
            if shift:
                self.down("shift")
                self.sleep(0.01, 0.05)
            key = "space" if character == " " else character
            self.down(key, character)
            if pending:
                self.sleep(0.0, 0.03)
                self.up(pending)
            self.sleep(0.03, 0.25)
            if shift:
                self.up("shift")
                self.sleep(0.0, 0.03)
            pending = key
        self.up(pending)
        self.sleep(0.03, 0.1)

    def words(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=self.rng.randint(1, 5)))

    def type(self) -> list[Action]:
        text = self.words()
        if self.rng.random() < 0.3:
            text = text.title()
        self.write(text)
        if self.rng.random() < 0.3:
            self.tap("enter", "\r")
            return [Type(text), Hotkey(("enter",))]
        return [Type(text)]

    def type_locked(self) -> list[Action]:
        text = self.words().upper().replace("SS", "X")
        self.tap("capslock")
        self.write(text, locked=True)
        self.tap("capslock")
        return [Type(text)]

    def type_wrongly(self) -> list[Action]:
        text, wrong = self.words(), self.rng.randint(1, 4)
        self.write(text + "xqzw"[:wrong])
        for n in range(wrong):
            self.down("backspace", "\b", repeat=n > 0)
            self.sleep(0.03, 0.1)
        self.up("backspace")
        self.sleep(0.03, 0.1)
        self.write("!")
        return [Type(text + "!")]

    def type_slowly(self) -> list[Action]:
        one, other = self.words(), self.words()
        self.write(one)
        self.sleep(2.1, 4.0)
        self.write(other)
        return [Type(one), Type(other)]

    def type_across_focus(self) -> list[Action]:
        """The focus moves on by itself in the middle; a title that changes is no such thing."""
        one, other = self.words() + ".", self.words()
        title, bounds = self.words(), (0, 0, 900, 700)
        self.events.append(rec.WindowChanged(self.t, "editor", title, bounds))
        self.sleep(0.05, 0.2)
        self.tap("escape", "\x1b")
        self.sleep(1.1, 1.5)
        half = len(one) // 2
        self.write(one[:half])
        self.events.append(rec.WindowChanged(self.t, "editor", "*" + title, bounds))
        self.write(one[half:])
        self.sleep(1.0, 1.2)
        self.events.append(rec.WindowChanged(self.t, "chat", title, bounds))
        self.write(other)
        return [Hotkey(("escape",)), Type(one), Type(other)]

    def type_composed(self) -> list[Action]:
        """An input method: letters that type nothing, a choice, the text; then a dead key."""
        text = self.rng.choice(CJK)
        for letter in self.rng.choice(["nihon", "ni'hao", "toukyou"]):
            self.tap(letter)
        if self.rng.random() < 0.4:
            self.tap("o")
            self.tap("backspace")
        for _ in range(self.rng.randint(0, 2)):
            self.tap("down")
        self.sleep(0.1, 3.5)
        self.tap(self.rng.choice(["space", "enter"]))
        self.events.append(rec.Committed(self.t, text))
        self.sleep(0.05, 0.3)
        accented = self.rng.choice(DEAD)
        self.tap("´")
        self.tap("e")
        self.events.append(rec.Committed(self.t, accented))
        self.sleep(0.05, 0.3)
        return [Type(text + accented)]

    def hold(self) -> list[Action]:
        """Hold a key until it repeats: a letter is typed as often, an arrow goes as far."""
        key, times = self.rng.choice(["a", "down", "delete"]), self.rng.randint(3, 12)
        for n in range(times):
            self.down(key, key if len(key) == 1 else "", repeat=n > 0)
            self.sleep(0.03, 0.04) if n else self.sleep(0.25, 0.5)
        self.up(key)
        return [Type(key * times)] if len(key) == 1 else [Hotkey((key,))] * times

    def chord(self) -> list[Action]:
        keys = self.rng.choice(CHORDS)
        for key in keys[:-1]:
            self.down(key)
            self.sleep(0.02, 0.3)
        times = self.rng.choice([1, 1, 3])
        for _ in range(times):
            text = keys[-1] if len(keys[-1]) == 1 and "ctrl" not in keys else ""
            self.tap(keys[-1].upper() if "shift" in keys else keys[-1], text)
        for key in self.rng.sample(keys[:-1], len(keys) - 1):
            self.up(key)
            self.sleep(0.01, 0.05)
        return [Hotkey(keys)] * times

    def switch(self) -> list[Action]:
        times = self.rng.choice([1, 2, 3])
        self.down("alt")
        self.sleep(0.05, 0.2)
        for _ in range(times):
            self.tap("tab", "\t")
        self.up("alt")
        if times == 1:
            return [Hotkey(("alt", "tab"))]
        return [KeyDown("alt"), *[Hotkey(("tab",))] * times, KeyUp("alt")]

    def lone_modifier(self) -> list[Action]:
        key = self.rng.choice(["meta", "alt", "shift", "ctrl"])
        self.tap(key)
        return [Hotkey((key,))] if key in ("meta", "alt") else []

    def named(self) -> list[Action]:
        key = self.rng.choice(TAPS)
        self.tap(key, {"enter": "\r", "tab": "\t", "escape": "\x1b", "delete": "\x7f"}.get(key, ""))
        return [Hotkey((key,))]

    # -- nothing ---------------------------------------------------------------------------------

    def wait(self) -> list[Action]:
        self.tap("f5")
        began = self.t
        self.events[-1] = rec.KeyReleased(began, "f5")
        pressed = next(e.t for e in reversed(self.events) if isinstance(e, rec.KeyPressed))
        self.sleep(2.2, 8.0)
        self.frame()
        waited = round((self.t - pressed) * 1000)
        self.sleep(0.3, 1.0)
        place = self.go()
        self.press()
        self.sleep(0.04, 0.1)
        self.release()
        return [Hotkey(("f5",)), Wait(waited), Click(*place)]

    def hover(self) -> list[Action]:
        self.sleep(1.6, 1.9)
        menu = self.go()
        self.sleep(0.1, 0.4)
        self.frame()
        self.sleep(0.5, 0.9)
        self.move(menu[0] + 30, menu[1] + 30)
        self.sleep(0.05, 0.2)
        self.press()
        self.sleep(0.04, 0.1)
        self.release()
        return [Move(*menu), Click(menu[0] + 30, menu[1] + 30)]


KINDS = [
    *("click", "clicks", "two_clicks", "held_click", "drag", "long_press", "scroll"),
    *("lost_release", "lost_press", "type", "type_locked", "type_wrongly", "type_slowly"),
    *("type_across_focus", "type_composed", "hold", "chord", "switch", "lone_modifier", "named"),
    *("wait", "hover"),
]


def generate(count: int, seed: int) -> tuple[list[rec.Event], list[Gesture]]:
    """Return the events of at least `count` actions of all kinds, and what was meant by them."""
    person, gestures, made = Person(random.Random(seed)), [], 0
    person.frame()
    kinds: list[str] = []
    while made < count:
        kinds = kinds or person.rng.sample(KINDS, len(KINDS))
        kind = kinds.pop()
        began = person.t
        gesture: Callable[[], list[Action]] = getattr(person, kind)
        actions = gesture()
        made += len(actions)
        gestures.append(Gesture(kind, began, person.t, actions))
        # What is typed one after the other would be one text; what it did to the screen comes late.
        person.sleep(0.1, 0.5)
        person.frame(changed=bool(actions))
        person.sleep(
            *((2.0, 2.6) if kind.startswith(("type", "hold", "click", "two")) else (0.1, 1.4))
        )
        if person.rng.random() < 0.3:
            person.frame(changed=False)
    person.events.append(rec.Stopped(person.t))
    return person.events, gestures
