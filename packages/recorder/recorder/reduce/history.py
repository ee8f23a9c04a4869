"""What was on the screen, under the pointer and in front at a past moment, as far back as is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from trajectory.actions import Point
from trajectory.recording import ElementSeen, FrameTaken, WindowChanged

# An input's time is when we heard of it: its effect may be on a picture that ended just before.
GUARD_S = 0.02
# An element is asked for at a press and answers late.
ANSWER_S = 0.3
KEPT = 64  # entries of a kind before those that nobody can ask for are forgotten

_Seen = TypeVar("_Seen", FrameTaken, ElementSeen, WindowChanged)


@dataclass
class History:
    """Keeps the pictures, elements and windows that a step to come may need."""

    _frames: list[FrameTaken] = field(default_factory=list)
    _under: list[ElementSeen] = field(default_factory=list)
    _focused: list[ElementSeen] = field(default_factory=list)
    _windows: list[WindowChanged] = field(default_factory=list)

    def take(self, event: FrameTaken | ElementSeen | WindowChanged, moments: list[float]) -> None:
        """Add an event; `moments` are the past times at which a step may still have begun."""
        match event:
            case FrameTaken():
                _add(self._frames, event, [*moments, *(m - GUARD_S for m in moments)])
            case ElementSeen(focused=True):
                _add(self._focused, event, moments)
            case ElementSeen():
                _add(self._under, event, [*moments, *(m + ANSWER_S for m in moments)])
            case WindowChanged():
                _add(self._windows, event, moments)

    def forget(self) -> None:
        """Forget what was on the screen: during a pause anything may have happened to it."""
        for seen in (self._frames, self._under, self._focused):
            seen.clear()

    def frame(self, began: float) -> FrameTaken | None:
        """Return the last picture whose grab had ended before what began at `began` took effect.

        A repeat was told by what draws, on the clock of the hand: it needs no guard.
        """
        return next(
            (f for f in reversed(self._frames) if f.t <= began - (0 if _repeats(f) else GUARD_S)),
            None,
        )

    def window(self, began: float) -> WindowChanged | None:
        return _last(self._windows, began)

    def focused(self, began: float) -> ElementSeen | None:
        return _last(self._focused, began)

    def under(self, began: float, place: Point) -> ElementSeen | None:
        """Return the element at `place`: the last one seen before, else the first that answered."""
        fit = [element for element in self._under if _holds(element, place)]
        answered = (e for e in fit if began < e.t <= began + ANSWER_S)
        return _last(fit, began) or next(answered, None)


def _add(seen: list[_Seen], event: _Seen, moments: list[float]) -> None:
    """Append; once there are many, keep the newest half and what answers for one of `moments`."""
    seen.append(event)
    if len(seen) <= KEPT:
        return
    newest = seen[KEPT // 2 :]
    answers = {id(found) for moment in moments if (found := _last(seen, moment)) is not None}
    seen[:] = [old for old in seen[: KEPT // 2] if id(old) in answers] + newest


def _last(seen: list[_Seen], moment: float) -> _Seen | None:
    return next((event for event in reversed(seen) if event.t <= moment), None)


def _repeats(frame: FrameTaken) -> bool:
    return frame.began == frame.t


def _holds(element: ElementSeen, place: Point) -> bool:
    left, top, width, height = element.bounds
    return left <= place[0] < left + width and top <= place[1] < top + height
