"""Whose window lies under the pointer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from Xlib import X, display, error

_DEPTH = 6


class Pointed:
    """Asks one display; for one thread."""

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        self._pid = self._display.intern_atom("_NET_WM_PID")

    def pid(self) -> int:
        """Return the process of the window under the pointer; 0 if it does not say."""
        window: Any = self._display.screen().root
        with suppress(error.XError, error.ConnectionClosedError, OSError):
            for _ in range(_DEPTH):
                window = window.query_pointer().child
                if not window:
                    return 0
                found = window.get_full_property(self._pid, X.AnyPropertyType)
                if found:
                    return int(found.value[0])
        return 0
