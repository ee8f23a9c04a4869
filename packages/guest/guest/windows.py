"""What the window manager knows: which windows there are, which is in front, and raising one."""

from __future__ import annotations

import threading
import time

from Xlib import X, display, error
from Xlib.protocol import event


class Windows:
    """One display's top-level windows by EWMH; safe to call from several threads."""

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        self._root = self._display.screen().root
        self._lock = threading.Lock()

    def wait_for_manager(self, *, timeout_s: float) -> bool:
        """Return once a window manager has announced itself; False after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not self._property(self._root, "_NET_SUPPORTING_WM_CHECK"):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def active_class(self) -> str:
        """Return the class of the window in front in lower case; "" if there is none."""
        with self._lock:
            ids = self._property(self._root, "_NET_ACTIVE_WINDOW")
            return self._class(ids[0]) if ids and ids[0] else ""

    def classes(self) -> list[str]:
        """Return the classes of all windows, the oldest first."""
        with self._lock:
            return [self._class(i) for i in self._property(self._root, "_NET_CLIENT_LIST")]

    def raise_class(self, name: str) -> bool:
        """Bring the newest window whose class begins with `name` forward; False if there is none."""
        with self._lock:
            for window_id in reversed(self._property(self._root, "_NET_CLIENT_LIST")):
                if self._class(window_id).startswith(name):
                    self._activate(window_id)
                    return True
        return False

    def _activate(self, window_id: int) -> None:
        message = event.ClientMessage(
            window=self._display.create_resource_object("window", window_id),
            client_type=self._display.intern_atom("_NET_ACTIVE_WINDOW"),
            data=(32, [2, X.CurrentTime, 0, 0, 0]),  # 2: from a pager, always obeyed
        )
        mask = X.SubstructureRedirectMask | X.SubstructureNotifyMask
        self._root.send_event(message, event_mask=mask)
        self._display.sync()

    def _class(self, window_id: int) -> str:
        window = self._display.create_resource_object("window", window_id)
        try:
            names = window.get_wm_class()
        except error.BadWindow:  # closed between the list and the question
            return ""
        return str(names[1]).lower() if names else ""

    def _property(self, window: object, name: str) -> list[int]:
        atom = self._display.intern_atom(name)
        try:
            found = window.get_full_property(atom, X.AnyPropertyType)  # type: ignore[attr-defined]
        except error.BadWindow:
            return []
        return [int(v) for v in found.value] if found else []
