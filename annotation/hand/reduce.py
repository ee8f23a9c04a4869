"""What a hand did in a take-over, as actions: RFB input in the words of `trajectory.hand`.

RFB sends the whole button mask, wheel included, and keysyms whose level is already that of the held
keys. Every step carries the picture from before its first press.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.hand import keysyms
from trajectory import Action, Button, Shell
from trajectory import hand as hands
from trajectory.recording import KeyPressed, KeyReleased, Moved, Pressed, Released, Scrolled

BUTTONS: dict[int, Button] = {
    0: "left",
    1: "middle",
    2: "right",
    7: "back",
    8: "forward",
}
WHEEL = {3: (0, -1), 4: (0, 1), 5: (-1, 0), 6: (1, 0)}  # bit of the mask -> (dx, dy)

_Input = KeyPressed | KeyReleased | Moved | Pressed | Released | Scrolled


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
    inputs = sorted(events, key=lambda event: event.seq)
    hand, mask = hands.Hand(), 0
    found: list[hands.HandStep] = []
    dropped: list[str] = []
    for event in inputs:
        if event.command:
            found += hand.close()
            found.append(hands.HandStep(Shell(event.command), event.at, event.at))
        elif event.keysym is None:
            for made in _pointer(event, mask):
                found += hand.take(made)
            mask = event.buttons or 0
        elif (key := _key(event, event.keysym)) is not None:
            found += hand.take(key)
        elif event.down and event.keysym not in keysyms.LEVEL_SHIFTS:
            dropped.append(f"key {event.keysym:#x} at {event.at:.3f} s has no canonical name")
    found += hand.close()
    found.sort(key=lambda step: step.began)  # a press may enclose what others did
    dropped += [f"{what} ({times} times)" for what, times in hand.dropped.items()]
    seen = _pictures(inputs)
    steps = (HandStep(s.action, s.began, s.ended, seen(s.began)) for s in found)
    return Reduction(tuple(steps), tuple(dropped))


def _pointer(event: Event, before: int) -> Iterator[_Input]:
    """Yield what changed of the button mask since `before`; a wheel turns where its bit is set."""
    t, x, y, mask = event.at, event.x or 0, event.y or 0, event.buttons or 0
    yield Moved(t, x, y)
    for bit in range(9):
        is_down, was_down = mask >> bit & 1, before >> bit & 1
        if bit in WHEEL:
            if is_down and not was_down:
                yield Scrolled(t, x, y, *WHEEL[bit])
        elif is_down and not was_down:
            yield Pressed(t, x, y, BUTTONS[bit])
        elif was_down and not is_down:
            yield Released(t, x, y, BUTTONS[bit])


def _key(event: Event, keysym: int) -> KeyPressed | KeyReleased | None:
    """Return the key by its canonical name, with the text it types; None where it has no name."""
    text = keysyms.text(keysym)
    name = keysyms.MODIFIERS.get(keysym) or keysyms.named_key(keysym)
    if name is None and text is None:
        return None
    name = name or ("space" if text == " " else str(text).lower())
    return KeyPressed(event.at, name, text or "") if event.down else KeyReleased(event.at, name)


def _pictures(inputs: Sequence[Event]) -> Callable[[float], dict[str, Any] | None]:
    """Return what tells the picture of a moment; input without one takes the one before."""
    times: list[float] = []
    pictures: list[dict[str, Any] | None] = []
    for event in inputs:
        times.append(max(event.at, times[-1]) if times else event.at)
        pictures.append(event.observation or (pictures[-1] if pictures else None))

    def before(moment: float) -> dict[str, Any] | None:
        return pictures[min(bisect_left(times, moment), len(pictures) - 1)]

    return before
