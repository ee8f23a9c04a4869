"""Tells, while a terminal is in front, whether it asks for a password: asked at every key and after it."""

from __future__ import annotations

import threading
from collections import deque

from recorder.capture.sink import Sink
from recorder.capture.terminals.line import asks_for_password
from trajectory.recording import ElementSeen

_OFTEN_S, _AFTER_S = 0.2, 2.0  # how often, and for how long after a key; each key asks as well
_SOMETIMES_S = 0.25  # while a password is asked for, or nobody can tell
_LATE_S = 0.5  # what is looked at later than this after a key says nothing about it
_BACK_S = 30.0
_KEYS = 1000

Bounds = tuple[int, int, int, int]


class Terminals:
    """Watches the terminal in front. What the line says at a key is told beside it; a prompt is
    told as of the first key that may be its answer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._wake = threading.Condition()
        self._front: tuple[int, Bounds] | None = None  # process, place
        self._keys: deque[tuple[float, str]] = deque(maxlen=_KEYS)
        self._line: float | None = None  # when the line that is being typed was begun
        self._told: bool | None = None
        self._again = self._stopping = False
        self._until = 0.0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="terminals", daemon=True)
        self._thread.start()

    def front(self, pid: int, bounds: Bounds) -> None:
        """A terminal has the focus: say at once what it does; never waits."""
        with self._wake:
            if self._front is None or self._front[0] != pid:
                self._line = None
                self._keys.clear()
            self._front = (pid, bounds)
            self._tell_again()

    def pressed(self) -> None:
        """A button went down: what is known of the focus is told anew; never waits."""
        if self._front is not None:
            with self._wake:
                self._tell_again()

    def leave(self) -> None:
        """Something else has the focus."""
        with self._wake:
            self._front = None

    def typed(self, t: float, key: str) -> None:
        """A key went down; never waits."""
        if self._front is not None:
            with self._wake:
                self._keys.append((t, key))
                self._wake.notify()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(2)

    def _tell_again(self) -> None:
        self._again = True
        self._until = self._sink.clock.now() + _AFTER_S
        self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                if not (self._stopping or self._keys or self._again):
                    self._wake.wait(self._pause())
                if self._stopping:
                    return
                front, again, self._again = self._front, self._again, False
            if front is not None:
                self._look(front, again)

    def _pause(self) -> float | None:
        if self._front is None:
            return None
        if self._sink.clock.now() < self._until:
            return _OFTEN_S
        return None if self._told is False else _SOMETIMES_S

    def _look(self, front: tuple[int, Bounds], again: bool) -> None:
        pid, bounds = front
        asked = asks_for_password(pid)
        now = self._sink.clock.now()
        late = self._take_keys(now)
        with self._wake:
            if self._front != front:
                return
        if asked and self._line is not None and not self._told:
            self._put(max(self._line, now - _BACK_S), bounds, True)
        elif asked is False and late is not None and self._told is False:
            self._put(late, bounds, None)
            again = True
        if again or asked != self._told:
            self._put(now, bounds, asked)
            self._told = asked

    def _take_keys(self, now: float) -> float | None:
        """Go through the keys since the last look; return the first that it came too late for."""
        late = None
        while self._keys:
            t, key = self._keys.popleft()
            self._until = t + _AFTER_S
            if now - t > _LATE_S and late is None:
                late = t
            if key == "enter":
                self._line = None
            elif self._line is None:
                self._line = t
        return late

    def _put(self, t: float, bounds: Bounds, password: bool | None) -> None:
        self._sink.put(ElementSeen(t, "terminal", "", bounds, focused=True, password=password))
