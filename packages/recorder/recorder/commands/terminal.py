"""What the terminal says while a recording runs; a terminal that was closed must not end it badly."""

from __future__ import annotations

import os
import sys
import threading

from recorder.capture.sound import Level
from recorder.session import State

_BAR = 20
_SILENT_S = 30.0


class Terminal:
    """One line that says what happens: the state, and how loud the voice is. Thread-safe."""

    def __init__(self, *, listening: bool) -> None:
        self._listening = listening
        self._state = State.RECORDING
        self._lock = threading.Lock()
        self._line = sys.stdout.isatty()  # one that is written over; else a line for each state

    def state(self, state: State) -> None:
        self._state = state
        sound = "" if self._listening else "   no sound"
        self._over(f"{state.value.upper()}{sound}")

    def level(self, level: Level) -> None:
        if self._line:
            bar = "#" * round(level.peak**0.5 * _BAR)
            silent = f"  silence for {level.silent_s:.0f} s" if level.silent_s > _SILENT_S else ""
            self._over(f"{self._state.value.upper()}  [{bar:{_BAR}}]{silent}")

    def trouble(self, what: str) -> None:
        self._write(f"\n{what}\n", error=True)

    def say(self, text: str) -> None:
        self._write(f"{text}\n")

    def _over(self, text: str) -> None:
        self._write(f"\r\033[K{text}" if self._line else f"{text}\n")

    def _write(self, text: str, *, error: bool = False) -> None:
        with self._lock:
            stream = sys.stderr if error else sys.stdout
            try:
                stream.write(text)
                stream.flush()
            except (OSError, ValueError):
                # Nobody reads it any more. What waits is thrown away, also when Python ends.
                self._line = False
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
