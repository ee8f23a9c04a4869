"""What a dialect has to know of the computer: where the pointer is, and what is held down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.dialects.grammar import ParseError
from trajectory import (
    Action,
    Button,
    Drag,
    KeyDown,
    KeyUp,
    MouseDown,
    MouseUp,
    Move,
    Point,
    target,
)


@dataclass(frozen=True, slots=True)
class State:
    """`pointer` is None until something has moved it; `keys` and `buttons` in order of pressing."""

    pointer: Point | None = None
    keys: tuple[str, ...] = ()
    buttons: tuple[Button, ...] = ()

    def after(self, *actions: Action) -> State:
        """Return the state when `actions` have been done."""
        state = self
        for action in actions:
            state = state._after(action)
        return state

    def releases(self) -> tuple[Action, ...]:
        """Return what lets go of all that is held, the last first: the end of a step."""
        buttons = [MouseUp(button) for button in reversed(self.buttons)]
        return (*buttons, *(KeyUp(key) for key in reversed(self.keys)))

    def at(self, who: str) -> Point:
        """Return the pointer's place for a call without one; raises ParseError if nobody knows."""
        if self.pointer is None:
            raise ParseError(f"{who} acts at the pointer, and nothing has moved it yet")
        return self.pointer

    def _after(self, action: Action) -> State:
        match action:
            case KeyDown(key=key):
                return replace(self, keys=(*(k for k in self.keys if k != key), key))
            case KeyUp(key=key):
                return replace(self, keys=tuple(k for k in self.keys if k != key))
            case MouseDown(button=button):
                return replace(self, buttons=(*(b for b in self.buttons if b != button), button))
            case MouseUp(button=button):
                return replace(self, buttons=tuple(b for b in self.buttons if b != button))
            case Drag(path=path):
                return replace(self, pointer=path[-1])
            case _:
                place = target(action)
                return self if place is None else replace(self, pointer=place)


def joined(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return `actions` without a Move directly before one that goes to the same place itself."""
    kept: list[Action] = []
    for action in actions:
        if kept and isinstance(kept[-1], Move) and target(kept[-1]) == target(action):
            kept.pop()
        kept.append(action)
    return tuple(kept)


def held(keys: Sequence[str], action: Action) -> tuple[Action, ...]:
    """Return `action` between the presses and releases of `keys`."""
    down = [KeyDown(key) for key in keys]
    return (*down, action, *(KeyUp(key) for key in reversed(keys)))
