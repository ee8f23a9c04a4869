"""What a hand does by doing nothing: it waits for the screen, or it rests on what opens under it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from trajectory.actions import Move, Wait
from trajectory.hand.gestures import Limits, Steps

WAIT_S = 2.0  # the screen changed so long after the last action: the hand waited for it
HOVER_S = 0.5  # a pointer that stayed so long had arrived
HOVER_LIMIT_S = 1.5  # what changes later than this is not the pointer's doing
SETTLE_S = 1.5  # what the last action set off is over by then


@dataclass(slots=True)
class _Place:
    """Where the pointer came to rest, and whether the screen answered."""

    t: float
    x: int
    y: int
    answered: bool = False


@dataclass
class Rest:
    """Follows pointer and screen between two actions."""

    steps: Steps
    limits: Limits
    acted_at: float | None = None  # when the last action ended
    _picture: str = ""
    _changed_at: float = -math.inf
    _moved_at: float = -math.inf
    _waited_to: float | None = None
    _place: _Place | None = None
    _hovers: list[_Place] = field(default_factory=list)

    def moments(self) -> list[float]:
        places = [*self._hovers, *([self._place] if self._place else [])]
        return [p.t for p in places] + ([self.acted_at] if self.acted_at is not None else [])

    def moved(self, t: float, x: int, y: int) -> None:
        self._moved_at = t
        place = self._place
        if place and math.dist((place.x, place.y), (x, y)) < self.limits.multi_click_px:
            return
        self._leave(t)
        self._place = _Place(t, x, y)

    def shown(self, t: float, picture: str) -> None:
        """Take note of a picture of the screen that was complete at `t`."""
        changed, self._picture = self._picture not in ("", picture), picture
        if not changed:
            return
        place = self._place
        if place and place.t <= t <= place.t + HOVER_LIMIT_S:
            acted_at = self.acted_at if self.acted_at is not None else -math.inf
            if place.t - max(acted_at, self._changed_at) >= SETTLE_S:
                place.answered = True
        elif t - self._moved_at > HOVER_LIMIT_S and (
            self.acted_at is not None and t - self.acted_at >= WAIT_S
        ):
            self._waited_to = t
        self._changed_at = t

    def acted(self, t: float, x: int | None = None, y: int | None = None) -> None:
        """Begin an action at `t`, with the pointer at (x, y) or with the keys."""
        if self._waited_to is not None and self.acted_at is not None:
            wait = Wait(round((self._waited_to - self.acted_at) * 1000))
            self.steps.put(wait, self.acted_at, self._waited_to)
        if x is not None and y is not None:
            place = self._place
            # A click on the place itself brings the pointer there anyway.
            if place and math.dist((place.x, place.y), (x, y)) > self.limits.drag_px:
                self._leave(t)
            for hover in self._hovers:
                self.steps.put(Move(hover.x, hover.y), hover.t, hover.t + HOVER_S)
        self._waited_to, self._place, self._hovers = None, None, []
        self.ended(t)

    def ended(self, t: float) -> None:
        self.acted_at = t if self.acted_at is None else max(t, self.acted_at)

    def forget(self) -> None:
        """Start anew: nobody knows what happened meanwhile."""
        self.acted_at = self._waited_to = self._place = None
        self._picture, self._hovers = "", []

    def _leave(self, t: float) -> None:
        if self._place and self._place.answered and t - self._place.t >= HOVER_S:
            self._hovers = [*self._hovers[-7:], self._place]
