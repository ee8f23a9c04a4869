"""What a hand did, as actions: a pure function from raw input to canonical steps.

Clicks, double clicks (< 0.5 s, < 4 px), drags (> 6 px, path kept), long presses, scrolls (one axis
and direction, gaps < 1 s), typing (broken by click, scroll, hotkey, Enter, gaps > 2 s), hotkeys, and command lines of a terminal.
Every step carries the picture from before its first press.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from annotation.hand import keysyms
from trajectory import (
    Action,
    Button,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    Point,
    Scroll,
    Shell,
    Type,
)

MULTI_CLICK_S = 0.5
MULTI_CLICK_PX = 4
DRAG_PX = 6
LONG_PRESS_S = 0.8
SCROLL_GAP_S = 1.0
TYPING_GAP_S = 2.0
PATH_POINTS = 200

BUTTONS: dict[int, Button] = {
    0: "left",
    1: "middle",
    2: "right",
    7: "back",
    8: "forward",
}
WHEEL = {3: (0, -1), 4: (0, 1), 5: (-1, 0), 6: (1, 0)}  # bit of the mask -> (dx, dy)


@dataclass(frozen=True, slots=True)
class Event:
    """One raw input: a pointer with its whole button mask, a key going down or up, a command line.

    `at` in seconds; `observation` is what was on the screen before it, where a picture was taken.
    """

    seq: int
    at: float
    x: int | None = None
    y: int | None = None
    buttons: int | None = None
    keysym: int | None = None
    down: bool | None = None
    command: str = ""
    observation: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HandStep:
    """One action of a hand, with when it began and what was on the screen before it."""

    action: Action
    at: float
    ended_at: float
    observation: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reduction:
    """The steps, and in words every input that became none."""

    steps: tuple[HandStep, ...]
    dropped: tuple[str, ...]


def reduce(events: Sequence[Event]) -> Reduction:
    """Turn input into steps; a press without a release counts as let go at the last event."""
    hand = _Hand()
    for event in sorted(events, key=lambda e: e.seq):
        hand.take(event)
    hand.close()
    steps = sorted(hand.steps, key=lambda step: step.at)  # a press may enclose what others did
    return Reduction(tuple(steps), tuple(hand.dropped))


@dataclass
class _Press:
    event: Event
    path: list[Point]
    modifiers: tuple[str, ...]


@dataclass
class _Hand:
    """The state between two events; `steps` grows as actions end."""

    steps: list[HandStep] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    mask: int = 0
    last: Event | None = None
    pressed: dict[int, _Press] = field(default_factory=dict)
    held: dict[str, Event] = field(default_factory=dict)  # modifiers that are down, in order
    used: set[str] = field(default_factory=set)  # of those, the ones that took part in something
    typed: str = ""
    typed_from: Event | None = None
    typed_at: float = 0.0
    clicked_at: float = 0.0  # when the newest click was pressed

    def take(self, event: Event) -> None:
        if event.observation is None and self.last is not None:
            event = replace(event, observation=self.last.observation)
        if event.command:
            self._end_typing()
            self._add(Shell(event.command), event, event.at)
        elif event.keysym is not None:
            self._key(event, event.keysym)
        else:
            self._pointer(event)
        self.last = event

    def close(self) -> None:
        if self.last is not None:
            for bit in list(self.pressed):
                self._release(bit, self.last)
        self._end_typing()

    # -- the mouse -------------------------------------------------------------------------------

    def _pointer(self, event: Event) -> None:
        x, y, mask = event.x or 0, event.y or 0, event.buttons or 0
        for press in self.pressed.values():
            if press.path[-1] != (x, y):
                press.path.append((x, y))
        for bit in range(9):
            is_down, was_down = mask >> bit & 1, self.mask >> bit & 1
            if is_down and not was_down:
                self._end_typing()
                if bit in WHEEL:
                    self._scroll(event, (x, y), *WHEEL[bit])
                else:
                    self.pressed[bit] = _Press(event, [(x, y)], self._use_modifiers())
            elif was_down and not is_down and bit in self.pressed:
                self._release(bit, event)
        self.mask = mask

    def _release(self, bit: int, event: Event) -> None:
        press = self.pressed.pop(bit)
        button, start = BUTTONS[bit], press.path[0]
        held_s = event.at - press.event.at
        if max(math.dist(start, point) for point in press.path) > DRAG_PX:
            action: Action = Drag(_thinned(press.path), button)
            self._add_with_keys(action, press.event, event.at, press.modifiers)
        elif held_s >= LONG_PRESS_S and button == "left" and not press.modifiers:
            self._add(LongPress(*start, round(held_s * 1000)), press.event, event.at)
        else:
            click = Click(*start, button, modifiers=press.modifiers)
            if not self._joins_click(click, press.event):
                self._add(click, press.event, event.at)

    def _joins_click(self, click: Click, event: Event) -> bool:
        """Count `click` into the step before it if both are one double or triple click."""
        before = self.steps[-1] if self.steps else None
        if before is None or not isinstance(before.action, Click):
            return False
        first = before.action
        if (
            first.count >= 3
            or (first.button, first.modifiers) != (click.button, click.modifiers)
            or math.dist((first.x, first.y), (click.x, click.y)) >= MULTI_CLICK_PX
            or event.at - self.clicked_at >= MULTI_CLICK_S
        ):
            return False
        self.clicked_at = event.at
        self.steps[-1] = replace(
            before, action=replace(first, count=first.count + 1), ended_at=event.at
        )
        return True

    def _scroll(self, event: Event, place: Point, dx: int, dy: int) -> None:
        before = self.steps[-1] if self.steps else None
        modifiers = self._use_modifiers()
        if before is not None and isinstance(before.action, Scroll) and not modifiers:
            turn = before.action
            if (
                event.at - before.ended_at < SCROLL_GAP_S
                and math.dist((turn.x, turn.y), place) <= DRAG_PX
                and turn.dx * dx + turn.dy * dy > 0  # the same axis in the same direction
            ):
                more = replace(turn, dx=turn.dx + dx, dy=turn.dy + dy)
                self.steps[-1] = replace(before, action=more, ended_at=event.at)
                return
        self._add_with_keys(Scroll(*place, dx, dy), event, event.at, modifiers)

    # -- the keyboard ----------------------------------------------------------------------------

    def _key(self, event: Event, keysym: int) -> None:
        if keysym in keysyms.LEVEL_SHIFTS:
            return
        if (modifier := keysyms.MODIFIERS.get(keysym)) is not None:
            self._modifier(modifier, event)
            return
        if not event.down:
            return
        name, text = keysyms.named_key(keysym), keysyms.text(keysym)
        if name in keysyms.LOCKS:
            return
        strong = [key for key in self.held if key != "shift"]
        if text is not None and not strong:
            self.used.update(self.held)
            self._type(text, event)
        elif name == "backspace" and self.typed and not self.held:
            self.typed, self.typed_at = self.typed[:-1], event.at
        elif name is not None or text is not None:
            self._end_typing()
            key = name or ("space" if text == " " else str(text).lower())
            self._add(Hotkey((*self._use_modifiers(), key)), event, event.at)
        else:
            self.dropped.append(f"key {keysym:#x} at {event.at:.3f} s has no canonical name")

    def _modifier(self, name: str, event: Event) -> None:
        if event.down:
            self.held.setdefault(name, event)
        elif name in self.held:
            pressed = self.held.pop(name)
            # Alone, Meta and Alt open menus; Ctrl and Shift do nothing.
            if name not in self.used and name in ("meta", "alt"):
                self._end_typing()
                self._add(Hotkey((name,)), pressed, event.at)
            self.used.discard(name)

    def _use_modifiers(self) -> tuple[str, ...]:
        self.used.update(self.held)
        return tuple(self.held)

    def _type(self, text: str, event: Event) -> None:
        if self.typed_from is not None and event.at - self.typed_at > TYPING_GAP_S:
            self._end_typing()
        if self.typed_from is None:
            self.typed_from = event
        self.typed += text
        self.typed_at = event.at

    def _end_typing(self) -> None:
        if self.typed_from is not None and self.typed:
            self._add(Type(self.typed), self.typed_from, self.typed_at)
        self.typed, self.typed_from = "", None

    # -- steps -----------------------------------------------------------------------------------

    def _add(self, action: Action, event: Event, ended_at: float) -> None:
        if isinstance(action, Click):
            self.clicked_at = event.at
        self.steps.append(HandStep(action, event.at, ended_at, event.observation))

    def _add_with_keys(
        self, action: Action, event: Event, ended_at: float, modifiers: tuple[str, ...]
    ) -> None:
        """Add an action that has no place for modifiers, between their own key steps."""
        for key in modifiers:
            self._add(KeyDown(key), event, event.at)
        self._add(action, event, ended_at)
        for key in reversed(modifiers):
            self._add(KeyUp(key), event, ended_at)


def _thinned(path: list[Point]) -> tuple[Point, ...]:
    """Return the path with at most PATH_POINTS points, its ends among them."""
    if len(path) <= PATH_POINTS:
        return tuple(path)
    stride = (len(path) - 1) / (PATH_POINTS - 1)
    return tuple(path[round(index * stride)] for index in range(PATH_POINTS))
