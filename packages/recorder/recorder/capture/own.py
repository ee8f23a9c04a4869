"""Where the recorder's own small window was, and when: its person's use of it is no part of their work."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

from trajectory.recording import Event, Moved, Pressed, Released, Scrolled

Box = tuple[int, int, int, int]
"""(left, top, width, height) in pixels of the whole screen."""

# The X server moves a window between our asking and its answer; its stamps are right to some ms.
_GUARD_S = 0.05
_PLACES = 256


@dataclass(slots=True)
class _Place:
    box: Box
    since: float
    until: float = math.inf


class Own:
    """The places of the window on the recorder's clock, and which buttons were pressed on it. Thread-safe.

    In doubt an event of the mouse is the window's, and a place of the screen is its own: neither is recorded.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: list[_Place] = []
        self._on_it: set[str] = set()
        self._elsewhere: set[str] = set()

    def comes(self, t: float, box: Box) -> None:
        """The window is about to be at `box`; where it was before it still may be until `came`."""
        with self._lock:
            self._places.append(_Place(box, t))
            if len(self._places) > _PLACES:
                first, second = self._places[:2]
                one = _Place(_around(first.box, second.box), first.since, second.until)
                self._places[:2] = [one]

    def came(self, t: float) -> None:
        """It is now where `comes` said last, and nowhere else."""
        with self._lock:
            self._leave(t, self._places[:-1])

    def went(self, t: float) -> None:
        """It is not on the screen any more."""
        with self._lock:
            self._leave(t, self._places)

    def during(self, began: float, ended: float) -> list[Box]:
        """Return every place where it may have been between two times."""
        with self._lock:
            return [place.box for place in self._at(began, ended)]

    def holds(self, box: Box, t: float) -> bool:
        """Return whether `box` lay inside of the window at `t`, all of it."""
        with self._lock:
            return any(_around(place.box, box) == place.box for place in self._at(t, t))

    def meant(self, t: float, x: int, y: int) -> bool:
        """Return whether what the mouse did there was, or may have been, done to the window."""
        with self._lock:
            return bool(self._on_it) or (not self._elsewhere and self._under(t, x, y))

    def takes(self, event: Event) -> bool:
        """Return whether an event is one of the mouse that belongs to the window; in the order of events.

        A button belongs to it from its press on it to its release, wherever that is; so does all that
        the mouse does meanwhile. What began elsewhere may end on it.
        """
        if not isinstance(event, Moved | Pressed | Released | Scrolled):
            return False
        with self._lock:
            under = self._under(event.t, event.x, event.y)
            match event:
                case Pressed(button=button):
                    if button in self._elsewhere:
                        self._elsewhere.clear()  # its release was never told
                    ours = bool(self._on_it) or (not self._elsewhere and under)
                    (self._on_it if ours else self._elsewhere).add(button)
                    return ours
                case Released(button=button) if button in self._elsewhere:
                    self._elsewhere.remove(button)
                    return False
                case Released(button=button) if button in self._on_it:
                    self._on_it.remove(button)
                    return True
            return bool(self._on_it) or (not self._elsewhere and under)

    def forget(self) -> None:
        """Forget the buttons: after a pause nobody knows which are down."""
        with self._lock:
            self._on_it.clear()
            self._elsewhere.clear()

    def _leave(self, t: float, places: list[_Place]) -> None:
        for place in places:
            place.until = min(place.until, t)

    def _at(self, began: float, ended: float) -> list[_Place]:
        return [
            place
            for place in self._places
            if place.since - _GUARD_S <= ended and began <= place.until + _GUARD_S
        ]

    def _under(self, t: float, x: int, y: int) -> bool:
        return any(_around(place.box, (x, y, 1, 1)) == place.box for place in self._at(t, t))


def _around(one: Box, other: Box) -> Box:
    """Return the smallest box around two."""
    left, top = min(one[0], other[0]), min(one[1], other[1])
    right = max(one[0] + one[2], other[0] + other[2])
    bottom = max(one[1] + one[3], other[1] + other[3])
    return left, top, right - left, bottom - top
