"""AgentNetTool's published reduction rules on our events: the baseline of `benchmarks.reduction`.

Written from the description of its rules, none of its code: multi-clicks < 0.5 s and < 4 px; drags
> 6 px with a move between; presses > 1 s are long; consecutive scrolls are merged whatever their
direction; keys are merged without a time limit until a click, scroll or hotkey; moves, waits, the
focus and committed text are nothing. Where it has no word of ours, it is given the nearest one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from trajectory import Action, Click, Drag, Hotkey, LongPress, Point, Scroll, Type
from trajectory.keys import MODIFIERS
from trajectory.recording import Event, KeyPressed, KeyReleased, Moved, Pressed, Released, Scrolled


class Peer:
    """One pass over the events; `steps` are (began, action)."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, Action]] = []
        self.held: list[str] = []
        self.used = False
        self.text, self.text_from = "", 0.0
        self.press: tuple[float, Point, list[Point]] | None = None
        self.last_press = -math.inf

    def take(self, event: Event) -> None:
        match event:
            case Moved(x=x, y=y) if self.press:
                self.press[2].append((x, y))
            case Pressed(t=t, x=x, y=y):
                self.end_text()
                self.press = (t, (x, y), [(x, y)])
            case Released():
                self.release(event)
            case Scrolled():
                self.scroll(event)
            case KeyPressed(key=key) if key in MODIFIERS:
                if key not in self.held:
                    self.held.append(key)
                    self.used = False
            case KeyPressed():
                self.key(event)
            case KeyReleased(t=t, key=key) if key in self.held:
                self.held.remove(key)
                if not self.used:
                    self.steps.append((t, Hotkey((key,))))
                self.used = True

    def release(self, event: Released) -> None:
        if self.press is None:
            return
        (began, start, path), self.press = self.press, None
        place, self.used = (event.x, event.y), True
        if math.dist(start, place) > 6 and len(path) > 1:
            self.steps.append((began, Drag(tuple(path), event.button)))
        elif event.t - began > 1.0:
            self.steps.append((began, LongPress(*start, round((event.t - began) * 1000))))
        else:
            self.click(Click(*start, event.button, modifiers=tuple(self.held)), began)

    def click(self, click: Click, began: float) -> None:
        last = self.steps[-1][1] if self.steps else None
        if (
            isinstance(last, Click) and last.button == click.button and last.count < 3
            and began - self.last_press < 0.5
            and math.dist((last.x, last.y), (click.x, click.y)) < 4
        ):  # fmt: skip
            more = Click(last.x, last.y, last.button, last.count + 1, last.modifiers)
            self.steps[-1] = (self.steps[-1][0], more)
        else:
            self.steps.append((began, click))
        self.last_press = began

    def scroll(self, event: Scrolled) -> None:
        self.end_text()
        self.used = True
        last = self.steps[-1][1] if self.steps else None
        if isinstance(last, Scroll):
            more = Scroll(last.x, last.y, last.dx + event.dx, last.dy + event.dy)
            self.steps[-1] = (self.steps[-1][0], more)
        else:
            self.steps.append((event.t, Scroll(event.x, event.y, event.dx, event.dy)))

    def key(self, event: KeyPressed) -> None:
        if [key for key in self.held if key != "shift"]:
            self.end_text()
            self.steps.append((event.t, Hotkey((*self.held, event.key.lower()))))
            self.used = True
            return
        self.used = True
        text = event.text if event.text.isprintable() else ""
        if not (text or len(event.key) == 1):
            self.end_text()
            self.steps.append((event.t, Hotkey((event.key,))))
            return
        if not self.text:
            self.text_from = event.t
        self.text += text or event.key

    def end_text(self) -> None:
        if self.text:
            self.steps.append((self.text_from, Type(self.text)))
        self.text = ""


def reduce(events: Iterable[Event]) -> list[tuple[float, Action]]:
    peer = Peer()
    for event in events:
        peer.take(event)
    peer.end_text()
    return sorted(peer.steps, key=lambda step: step[0])
