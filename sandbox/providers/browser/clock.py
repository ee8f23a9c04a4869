"""A clock of our own for browser pages: stop it, step it, run it faster, with the game unaltered.

What it covers: Date, performance, Event.timeStamp, Intl and Temporal; timers, animation frames (60 Hz)
and idle callbacks; CSS animations and transitions, Web Animations, SMIL, document.timeline; audio and
video elements; AudioContext; frames of any origin; dedicated workers; and, with a seed, Math.random
and crypto.getRandomValues.

What it does not cover, and what a task on such a page must not rely on:

* time that comes from elsewhere: a server's time by fetch or WebSocket, network games;
* WASM threads that wait with Atomics.wait, audio worklets, shared workers and service workers;
* a worker that never yields: a step waits 5 s for it, then says so and goes on without it;
* animations inside shadow roots, and the pixels of a video between two seeks;
* windows of their own (window.open), which keep a time line of their own;
* entries of PerformanceObserver for navigation and resources, requestVideoFrameCallback;
* a page that loads resources while time stands still: they arrive in real time, so wait for them
  before the first step where the order matters.

Time moves only when the clock moves it, at every rate: at rate 1 it follows the wall in slices. A
callback sees the exact time it was due. Each document of the top frame begins a time line at 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

EPOCH_MS = 1_767_225_600_000
"""Where Date stands at a document's start: 2026-01-01T00:00:00Z, so that two runs see the same."""

MAX_RATE = 1000
_PIECE_MS = 1000

PARTS = ("engine", "realm", "time", "timers", "motion", "media", "workers")

API = "globalThis[Symbol.for('tandem.clock')]"


class ClockMissing(Exception):
    """The page has no clock: it was opened before the init scripts were in place."""


class Evaluates(Protocol):
    """Anything that evaluates JavaScript in the top frame and awaits promises."""

    def evaluate(self, expression: str, /) -> object: ...


@dataclass(frozen=True, slots=True)
class ClockState:
    """`mode` is "stepped" (stands still between steps), "realtime" or "scaled".

    `now` is in ms of game time since the document's start; `frames` counts frames at 60 Hz;
    `followers` are the workers and foreign frames that keep time with the page; `uncovered` says
    what on this page runs in real time all the same.
    """

    mode: str
    now: float
    rate: float
    frames: int
    timers: int
    followers: tuple[str, ...]
    uncovered: tuple[str, ...]


class Clock:
    """The clock of one page; every call returns when it has taken effect, and the state after it."""

    def __init__(self, page: Evaluates) -> None:
        self._page = page

    @staticmethod
    def scripts(
        seed: int | None = 0, *, running: bool = False, epoch_ms: int = EPOCH_MS
    ) -> list[str]:
        """Return the scripts to run in every new document, in every frame, before the page's own.

        Time stands still at the start unless `running`. Without a seed randomness stays the browser's.
        """
        config = {"seed": seed, "running": running, "epoch": epoch_ms}
        return [f"({_source()})({json.dumps(config)});"]

    def pause(self) -> ClockState:
        """Stop the time between two callbacks."""
        return self._call("pause()")

    def resume(self) -> ClockState:
        """Let the time run at the present rate."""
        return self._call("resume()")

    def step(self, ms: float) -> ClockState:
        """Move the time by exactly `ms` as fast as the page can, then stand still."""
        return self._pieces("step", ms, _PIECE_MS)

    def run(self, ms: float) -> ClockState:
        """Let `ms` of game time pass at the present rate of the wall clock, then stand still."""
        return self._pieces("run", ms, _PIECE_MS * self.state().rate)

    def rate(self, x: float) -> ClockState:
        """Set the speed, 1 being real time; whether the clock runs does not change."""
        if not 0 < x <= MAX_RATE:
            raise ValueError(f"a rate is above 0 and at most {MAX_RATE}, not {x}")
        return self._call(f"rate({x})")

    def state(self) -> ClockState:
        return self._call("state()")

    def _pieces(self, verb: str, ms: float, piece: float) -> ClockState:
        """Do it in pieces, so that no single call of the page takes long."""
        if not 0 <= ms < math.inf:
            raise ValueError(f"{verb} takes a time in ms, 0 or more, not {ms}")
        while ms > piece:
            self._call(f"{verb}({piece})")
            ms -= piece
        return self._call(f"{verb}({ms})")

    def _call(self, what: str) -> ClockState:
        said = self._page.evaluate(f"{API} ? {API}.{what} : null")
        if not isinstance(said, Mapping):
            raise ClockMissing("this page has no clock: open it with the clock's scripts in place")
        return ClockState(
            mode=str(said["mode"]),
            now=float(said["now"]),
            rate=float(said["rate"]),
            frames=int(said["frames"]),
            timers=int(said["timers"]),
            followers=tuple(said["followers"]),
            uncovered=tuple(said["uncovered"]),
        )


@cache
def _source() -> str:
    """Return one function of (config): all parts in a scope of their own; a worker gets it as text."""
    folder = Path(__file__).parent
    parts = [folder / f"clock_{name}.js" for name in PARTS] + [folder / "clock.js"]
    body = "\n".join(path.read_text(encoding="utf-8") for path in parts)
    own = "Function.prototype.toString.call(tandemClock)"
    return f'function tandemClock(config) {{\n"use strict";\n{body}\ninstall(config, {own});\n}}'
