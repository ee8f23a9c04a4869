"""The mouse of a hand: clicks that count, drags with their path, long presses, turns of the wheel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from trajectory.actions import Action, Button, Click, Drag, KeyDown, KeyUp, LongPress, Point, Scroll
from trajectory.hand.gestures import Limits, Steps

LONG_PRESS_S = 0.8
SCROLL_GAP_S = 1.0
PATH_POINTS = 200
PRESS_LIMIT_S = 120.0  # a button that stays down longer has lost its release


@dataclass(slots=True)
class _Press:
    t: float
    began: float  # of the modifiers, where they came first
    path: list[Point]
    modifiers: tuple[str, ...]


@dataclass(slots=True)
class _Clicks:
    """A click that the next may join."""

    click: Click
    began: float
    pressed: float
    ended: float


@dataclass(slots=True)
class _Turn:
    """A turn of the wheel that the next notch may join."""

    scroll: Scroll
    modifiers: tuple[str, ...]
    began: float
    ended: float


@dataclass
class Pointer:
    """What the mouse is in the middle of."""

    steps: Steps
    limits: Limits
    at: Point = (0, 0)
    _pressed: dict[Button, _Press] = field(default_factory=dict)
    _clicks: _Clicks | None = None
    _turn: _Turn | None = None

    def moments(self) -> list[float]:
        going = [p.began for p in self._pressed.values()]
        return going + [g.began for g in (self._clicks, self._turn) if g]

    def moved(self, x: int, y: int) -> None:
        self.at = (x, y)
        for press in self._pressed.values():
            if press.path[-1] != (x, y):
                press.path.append((x, y))
                if len(press.path) > 20 * PATH_POINTS:
                    press.path = [*press.path[:-1:2], press.path[-1]]

    def pressed(self, t: float, button: Button, modifiers: tuple[str, ...], began: float) -> None:
        if button in self._pressed:  # its release was lost
            self.released(t, button, ())
        self._end_turn()
        self._pressed[button] = _Press(t, began, [self.at], modifiers)

    def released(self, t: float, button: Button, modifiers: tuple[str, ...]) -> bool:
        """Let go of a button; False for one that was not down."""
        press = self._pressed.pop(button, None)
        if press is None:
            return False
        start = press.path[0]
        if max(math.dist(start, point) for point in press.path) > self.limits.drag_px:
            self.settle()
            # Whether a thing is copied or moved is decided by the keys at its release.
            held = tuple(dict.fromkeys((*press.modifiers, *modifiers)))
            self._put(Drag(_thinned(press.path), button), held, press.began, t)
        elif t - press.t >= LONG_PRESS_S and button == "left" and not press.modifiers:
            self.settle()
            self.steps.put(LongPress(*start, round((t - press.t) * 1000)), press.began, t)
        else:
            self._clicked(Click(*start, button, modifiers=press.modifiers), press, t)
        return True

    def scrolled(
        self, t: float, dx: int, dy: int, modifiers: tuple[str, ...], began: float
    ) -> None:
        turn = self._turn
        if turn and turn.modifiers == modifiers and self._goes_on(turn, t, dx, dy):
            old = turn.scroll
            turn.scroll = Scroll(old.x, old.y, old.dx + dx, old.dy + dy)
            turn.ended = t
            return
        self.settle()
        self._turn = _Turn(Scroll(*self.at, dx, dy), modifiers, began, t)

    def expire(self, t: float) -> None:
        """End what nothing at `t` or later can join."""
        late = self._clicks and t - self._clicks.pressed >= self.limits.multi_click_s
        if late and not self._pressed:
            self._end_clicks()
        if self._turn and t - self._turn.ended >= SCROLL_GAP_S:
            self._end_turn()
        for button, press in list(self._pressed.items()):
            if t - press.t >= PRESS_LIMIT_S:
                self.released(press.t + PRESS_LIMIT_S, button, ())

    def settle(self) -> None:
        """End the clicks and the turn: something else began."""
        self._end_clicks()
        self._end_turn()

    def drop(self) -> list[Button]:
        """Let what is held come to nothing; return its names."""
        held = list(self._pressed)
        self._pressed.clear()
        return held

    def close(self, t: float) -> None:
        for button in list(self._pressed):
            self.released(t, button, ())
        self.settle()

    def _goes_on(self, turn: _Turn, t: float, dx: int, dy: int) -> bool:
        old = turn.scroll
        near = math.dist((old.x, old.y), self.at) <= self.limits.scroll_px
        return near and t - turn.ended < SCROLL_GAP_S and _way(old.dx, old.dy) == _way(dx, dy)

    def _clicked(self, click: Click, press: _Press, t: float) -> None:
        last = self._clicks
        if last and self._joins(click, press, last):
            first = last.click
            last.click = Click(first.x, first.y, first.button, first.count + 1, first.modifiers)
            last.pressed, last.ended = press.t, t
            return
        self._end_clicks()
        self._clicks = _Clicks(click, press.began, press.t, t)

    def _joins(self, click: Click, press: _Press, last: _Clicks) -> bool:
        first = last.click
        return (
            first.count < 3
            and (first.button, first.modifiers) == (click.button, click.modifiers)
            and math.dist((first.x, first.y), (click.x, click.y)) < self.limits.multi_click_px
            and press.t - last.pressed < self.limits.multi_click_s
        )

    def _end_clicks(self) -> None:
        if self._clicks:
            self.steps.put(self._clicks.click, self._clicks.began, self._clicks.ended)
        self._clicks = None

    def _end_turn(self) -> None:
        if self._turn:
            self._put(self._turn.scroll, self._turn.modifiers, self._turn.began, self._turn.ended)
        self._turn = None

    def _put(self, action: Action, modifiers: tuple[str, ...], began: float, ended: float) -> None:
        """Put an action that has no place for modifiers between steps of their own."""
        for key in modifiers:
            self.steps.put(KeyDown(key), began, began)
        self.steps.put(action, began, ended)
        for key in reversed(modifiers):
            self.steps.put(KeyUp(key), began, ended)


def _way(dx: int, dy: int) -> tuple[str, bool]:
    """Return axis and direction of a turn."""
    return ("x", dx > 0) if abs(dx) > abs(dy) else ("y", dy > 0)


def _thinned(path: list[Point]) -> tuple[Point, ...]:
    """Return the path with at most PATH_POINTS points, its ends among them."""
    if len(path) <= PATH_POINTS:
        return tuple(path)
    stride = (len(path) - 1) / (PATH_POINTS - 1)
    return tuple(path[round(index * stride)] for index in range(PATH_POINTS))
