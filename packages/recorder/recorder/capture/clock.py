"""The one clock of a recording, and what ties the display's and the wall's clock to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

_ROUNDS = 12
# On a computer that is busy for a moment a comparison says less than the one before it.
_EXACT_S = 0.003
_WRAP_MS = 1 << 32  # X time stamps: milliseconds in 32 bits, around again after 49.7 days


class Clock:
    """Seconds since it was made, by CLOCK_MONOTONIC: never set, and still while the computer sleeps."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.wall_start = time.time()
        self._asleep = _asleep()

    def now(self) -> float:
        return time.monotonic() - self._start

    def slept(self) -> float:
        """Return for how long the computer slept since this was asked last, in seconds."""
        asleep = _asleep()
        slept, self._asleep = asleep - self._asleep, asleep
        return slept


def _asleep() -> float:
    """Return all the time that the computer has slept since it was booted, in seconds."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Reading(NamedTuple):
    """`offset` + a stamp in seconds = the recorder's time; true within `uncertain` seconds."""

    offset: float
    uncertain: float


class ServerTime:
    """Turns the time stamps of an X server into the recorder's seconds.

    A stamp is cut to whole milliseconds, so an event is put up to 1 ms too early, never too late: a
    picture that is taken for the one before it really is.
    """

    def __init__(self, clock: Clock, stamp: Callable[[], int]) -> None:
        """`stamp` asks the server for its time, in ms, and waits for the answer."""
        self._clock, self._stamp = clock, stamp
        self._base = stamp()
        self._first = self._now = self._measure()

    @property
    def skew(self) -> float:
        """How far the server's clock has run from ours since the start, in seconds."""
        return self._now.offset - self._first.offset

    @property
    def uncertain(self) -> float:
        return self._now.uncertain

    def measure(self) -> None:
        """Compare the clocks again; after this, stamps are read by what was found."""
        found = self._measure()
        if found.uncertain <= max(_EXACT_S, self._now.uncertain):
            self._now = found

    def seconds(self, stamp: int) -> float:
        """Return a stamp's time on the recorder's clock."""
        return self._since(stamp) + self._now.offset

    def _since(self, stamp: int) -> float:
        passed = (stamp - self._base) % _WRAP_MS
        return (passed - _WRAP_MS if passed > _WRAP_MS // 2 else passed) / 1000

    def _measure(self) -> Reading:
        best = Reading(0.0, float("inf"))
        for _ in range(_ROUNDS):
            before = self._clock.now()
            stamp = self._since(self._stamp())
            after = self._clock.now()
            if (after - before) / 2 < best.uncertain:
                best = Reading((before + after) / 2 - stamp - 0.0005, (after - before) / 2)
        return Reading(best.offset, best.uncertain + 0.0005)
