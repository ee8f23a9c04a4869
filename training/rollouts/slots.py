"""Policy slots: how many answers are waited for at once, and how busy that keeps the policy."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.policy import Candidate, Policy, PolicyBusy, PolicyRequest, PolicyUnreachable

LOOK_S = 0.25
BACKOFF_S = (0.5, 10.0)


class Stopped(Exception):
    """The episode is not this worker's any more, or the worker is going."""


class Meter:
    """How much of `size` things was in use, over the time since it was last read."""

    def __init__(self, size: int) -> None:
        self.size, self._level, self._sum = size, 0, 0.0
        self._lock = threading.Lock()
        self._since = self._read = time.monotonic()

    def add(self, change: int) -> None:
        with self._lock:
            self._count()
            self._level += change

    def share(self) -> float:
        """Return the share in use, from 0 to 1, since the last call."""
        with self._lock:
            self._count()
            seconds, used = self._since - self._read, self._sum
            self._read, self._sum = self._since, 0.0
        return used / (self.size * seconds) if seconds > 0 else 0.0

    def _count(self) -> None:
        now = time.monotonic()
        self._sum += self._level * (now - self._since)
        self._since = now


class Slots:
    """`size` slots, given out in the order of asking."""

    def __init__(self, size: int) -> None:
        self.meter = Meter(size)
        self._free, self._lock = size, threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def take(self, stopped: Callable[[], bool]) -> None:
        """Return when a slot is the caller's; raises Stopped if `stopped` says so first."""
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                self.meter.add(1)
                return
            mine = threading.Event()
            self._waiting.append(mine)
        while not mine.wait(LOOK_S):
            if stopped():
                with self._lock:
                    if not mine.is_set():
                        self._waiting.remove(mine)
                        raise Stopped
        # The slot was handed over: it never was free in between.

    def give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
                self.meter.add(-1)


@dataclass
class Control:
    """What a worker's loop and the thread of one episode tell each other."""

    stop: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)  # cleared while paused
    steps: int = 0
    busy_since: float | None = None  # when the environment was last asked for something
    waited: float = 0.0
    """Seconds in which the episode could not go on: paused, no slot, no policy."""
    thinking: float = 0.0

    def wait_to_go(self) -> None:
        """Return once the rollout is not paused; raises Stopped."""
        begun = time.monotonic()
        while not self.go.wait(LOOK_S):
            if self.stop.is_set():
                break
        self.waited += time.monotonic() - begun
        if self.stop.is_set():
            raise Stopped


@dataclass(slots=True)
class SlottedPolicy:
    """A policy asked through a slot, again and again while it can't be reached, at most `patience_s`."""

    policy: Policy
    slots: Slots
    control: Control
    patience_s: float

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return what the policy answers; raises Stopped, and PolicyError as the policy does."""
        lost_at: float | None = None
        pause = BACKOFF_S[0]
        while True:
            self.control.wait_to_go()
            begun = time.monotonic()
            self.slots.take(self.control.stop.is_set)
            asked = time.monotonic()
            self.control.waited += asked - begun
            try:
                answer = self.policy.propose(request, k)
                self.control.thinking += time.monotonic() - asked
                return answer
            except (PolicyUnreachable, PolicyBusy):
                now = time.monotonic()
                self.control.waited += now - asked
                lost_at = asked if lost_at is None else lost_at
                if now - lost_at + pause > self.patience_s:
                    raise
            finally:
                self.slots.give()
            # Nobody's fault: the episode waits where it is, and leaves its slot to others.
            if self.control.stop.wait(pause):
                raise Stopped
            self.control.waited += pause
            pause = min(pause * 2, BACKOFF_S[1])
