"""What a hand did, as canonical actions: raw events one by one in, steps in order out.

Clicks up to triple, drags with path and modifiers, long presses, scrolls (one axis, direction and
place, gaps < 1 s), typing (broken by the mouse, a hotkey, Enter, a change of focus, a gap > 2 s),
hotkeys; Wait where the screen changed while nothing was done, Move where it changed under a resting
pointer that then went on. A repeating key counts as often as it took effect. Memory does not grow
with the recording: it holds only what is not over yet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from trajectory.hand.gestures import HandStep, Limits, Steps
from trajectory.hand.keyboard import Keyboard
from trajectory.hand.pointer import Pointer
from trajectory.hand.rest import Rest
from trajectory.recording import (
    Committed,
    ElementSeen,
    Event,
    FrameTaken,
    KeyPressed,
    KeyReleased,
    Missed,
    Moved,
    Paused,
    Pressed,
    Released,
    Resumed,
    Scrolled,
    Stopped,
    WindowChanged,
)

__all__ = ["Hand", "HandStep", "Limits", "reduce"]

FOCUS_LAG_S = 1.0  # what a click or a hotkey did to the focus is reported within this time


class Hand:
    """Turns events, in the order of their times, into steps.

    `dropped` counts in words what became no step though it should have.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.dropped: Counter[str] = Counter()
        self._steps = Steps()
        self._pointer = Pointer(self._steps, limits)
        self._keys = Keyboard(self._steps, self.dropped)
        self._rest = Rest(self._steps, limits)
        self._t = 0.0
        self._moved_focus_at = -math.inf
        self._window: WindowChanged | None = None
        self._element: ElementSeen | None = None

    def take(self, event: Event) -> list[HandStep]:
        """Return the steps that are now complete, in the order in which they began."""
        self._t = max(self._t, event.t)
        self._pointer.expire(event.t)
        self._keys.expire(event.t)
        match event:
            case Moved() | Pressed() | Released() | Scrolled():
                self._mouse(event)
            case KeyPressed(t=t, key=key, text=text):
                if self._keys.pressed(t, key, text):
                    self._pressed_key(t)
            case KeyReleased(t=t, key=key):
                if self._keys.released(t, key):
                    self._pressed_key(t)
            case Committed(t=t, text=text):
                self._keys.committed(t, text)
                self._pressed_key(t)
            case FrameTaken(t=t, sha256=picture):
                self._rest.shown(t, picture)
            case WindowChanged() | ElementSeen():
                self._focus(event)
            case Paused() | Resumed():
                self._cut()
            case Missed() | Stopped():
                self._forget()
            case _:
                pass
        return self._steps.before(min(self._open(), default=math.inf))

    def close(self) -> list[HandStep]:
        """Return the rest; what is still held counts as let go at the last event."""
        self._forget()
        return self._steps.before(math.inf)

    def moments(self) -> list[float]:
        """Return the past moments at which a step may have begun that is not out yet."""
        return [*self._open(), *self._rest.moments(), *self._steps.moments()]

    def _open(self) -> list[float]:
        return [*self._pointer.moments(), *self._keys.moments()]

    def _mouse(self, event: Moved | Pressed | Released | Scrolled) -> None:
        t = event.t
        self._pointer.moved(event.x, event.y)
        match event:
            case Pressed(button=button):
                self._act(event)
                self._pointer.pressed(t, button, *self._keys.use(t))
            case Released(button=button):
                modifiers, _ = self._keys.use(t)
                if self._pointer.released(t, button, modifiers):
                    self._rest.ended(t)
                else:
                    self.dropped[f"{button} was let go without a press"] += 1
            case Scrolled(dx=dx, dy=dy) if dx or dy:
                self._act(event)
                self._pointer.scrolled(t, dx, dy, *self._keys.use(t))
            case Moved(x=x, y=y):
                self._rest.moved(t, x, y)

    def _act(self, event: Pressed | Scrolled) -> None:
        self._rest.acted(event.t, event.x, event.y)
        self._keys.end_typing()
        self._moved_focus_at = event.t

    def _pressed_key(self, t: float) -> None:
        self._rest.acted(t)
        self._pointer.settle()
        if not self._keys.typing:
            self._moved_focus_at = t

    def _focus(self, event: WindowChanged | ElementSeen) -> None:
        """Break the text where the focus moved by itself; a title may change while one types."""
        if isinstance(event, WindowChanged):
            old, self._window = self._window, event
            moved = old is not None and (old.app, old.bounds) != (event.app, event.bounds)
        elif event.focused:
            before, self._element = self._element, event
            moved = before is not None and not _same(before, event)
        else:
            return
        if moved and event.t - self._moved_focus_at > FOCUS_LAG_S:
            self._keys.end_typing()

    def _cut(self) -> None:
        """Drop what is held: its release belongs to a moment of which nobody knows anything."""
        self.dropped.update(f"{name} was cut by a pause" for name in self._pointer.drop())
        self.dropped.update(f"{name} was cut by a pause" for name in self._keys.drop())
        self._forget()

    def _forget(self) -> None:
        self._pointer.close(self._t)
        self._keys.close()
        self._rest.forget()
        self._window = self._element = None


def reduce(events: Iterable[Event], limits: Limits | None = None) -> Iterator[HandStep]:
    """Yield the steps of events that come in the order of their times."""
    hand = Hand(limits)
    for event in events:
        yield from hand.take(event)
    yield from hand.close()


def _same(one: ElementSeen, other: ElementSeen) -> bool:
    """Whether both are one element, which may have grown meanwhile."""
    (left, top, width, height), (left2, top2, width2, height2) = one.bounds, other.bounds
    apart = (
        left >= left2 + width2 or left2 >= left + width
        or top >= top2 + height2 or top2 >= top + height
    )  # fmt: skip
    return (one.role, one.name) == (other.role, other.name) and not apart
