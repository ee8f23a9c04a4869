"""What the parts of a hand share: finished steps in the order in which they began, and the limits."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from trajectory.actions import Action


@dataclass(frozen=True, slots=True)
class HandStep:
    """One action of a hand; `began` and `ended` in the seconds of the events it was made of.

    `began` is the first press of the step: what was on the screen before it is what the hand saw.
    """

    action: Action
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What tells one gesture from another: seconds from press to press, pixels of the screen."""

    multi_click_s: float = 0.5
    multi_click_px: float = 4.0
    drag_px: float = 6.0
    scroll_px: float = 16.0

    def scaled(self, scale: float) -> Limits:
        """Return the limits of a screen that draws `scale` pixels where an ordinary one draws one."""
        return Limits(
            self.multi_click_s,
            self.multi_click_px * scale,
            self.drag_px * scale,
            self.scroll_px * scale,
        )


@dataclass
class Steps:
    """Steps that are done, kept back while a gesture that began before them still goes on."""

    _waiting: list[tuple[float, int, HandStep]] = field(default_factory=list)
    _count: int = 0

    def put(self, action: Action, began: float, ended: float) -> None:
        heapq.heappush(self._waiting, (began, self._count, HandStep(action, began, ended)))
        self._count += 1

    def moments(self) -> list[float]:
        return [began for began, _, _ in self._waiting]

    def before(self, moment: float) -> list[HandStep]:
        """Take out, in order, every step that began before `moment`."""
        ready = []
        while self._waiting and self._waiting[0][0] < moment:
            ready.append(heapq.heappop(self._waiting)[2])
        return ready
