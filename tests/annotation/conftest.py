"""Fixtures of the annotation tests."""

from __future__ import annotations

import pytest

from annotation.reduce import Event


class Hand:
    """Writes the raw input of known actions; time moves only by what each gesture takes."""

    SHIFT, CTRL, ALT, META = 0xFFE1, 0xFFE3, 0xFFE9, 0xFFEB
    ENTER, BACKSPACE = 0xFF0D, 0xFF08

    def __init__(self, *, seq: int = 0, at: float = 100.0) -> None:
        self.events: list[Event] = []
        self.seq, self.at = seq, at
        self.place = (0, 0)

    def _put(self, **values: object) -> None:
        self.seq += 1
        observation = {"screenshot": f"frame-{self.seq}", "width": 1280, "height": 720}
        self.events.append(
            Event(seq=self.seq, at=self.at, observation=observation, **values)
        )

    def wait(self, seconds: float) -> Hand:
        self.at += seconds
        return self

    def move(self, x: int, y: int, mask: int = 0) -> Hand:
        self.at += 0.01
        self.place = (x, y)
        self._put(x=x, y=y, buttons=mask)
        return self

    def click(self, x: int, y: int, *, bit: int = 0, held: float = 0.05) -> Hand:
        self.move(x, y)
        self.move(x, y, 1 << bit)
        self.at += held
        return self.move(x, y)

    def drag(self, *path: tuple[int, int], bit: int = 0) -> Hand:
        self.move(*path[0])
        for point in path:
            self.move(*point, 1 << bit)
        return self.move(*path[-1])

    def notch(self, bit: int) -> Hand:
        self.at += 0.05
        x, y = self.place
        self._put(x=x, y=y, buttons=1 << bit)
        self._put(x=x, y=y, buttons=0)
        return self

    def key(self, keysym: int, down: bool) -> Hand:
        self.at += 0.02
        self._put(keysym=keysym, down=down)
        return self

    def tap(self, keysym: int) -> Hand:
        return self.key(keysym, True).key(keysym, False)

    def type(self, text: str) -> Hand:
        for character in text:
            code = ord(character)
            keysym = code if code < 0x100 else 0x0100_0000 + code
            if character.isupper():
                self.key(self.SHIFT, True).tap(keysym).key(self.SHIFT, False)
            else:
                self.tap(keysym)
        return self

    def chord(self, *keysyms: int) -> Hand:
        for keysym in keysyms:
            self.key(keysym, True)
        for keysym in reversed(keysyms):
            self.key(keysym, False)
        return self


@pytest.fixture
def hand() -> type[Hand]:
    """Return a new scripted hand with hand()."""
    return Hand
