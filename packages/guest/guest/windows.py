"""What the window manager knows: which windows there are, which is in front, and raising one."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from Xlib import X, Xatom, display, error
from Xlib.protocol import event

from guest.errors import NotFound

_MAX_TITLE = 500
_MAX_WINDOWS = 500


@dataclass(frozen=True, slots=True)
class Window:
    """A window: `box` is (left, top, width, height) of what its program draws, in pixels."""

    id: str
    title: str
    program: str
    box: tuple[int, int, int, int]
    active: bool


class Windows:
    """One display's top-level windows by EWMH; safe to call from several threads."""

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        self._root = self._display.screen().root
        self._lock = threading.Lock()

    def wait_for_manager(self, *, timeout_s: float) -> bool:
        """Return once a window manager answers; False after `timeout_s`.

        One that has announced itself may still be reading its theme: what opens meanwhile is not
        managed before the next event. So it is asked how wide a frame would be (EWMH,
        _NET_REQUEST_FRAME_EXTENTS), which only its main loop answers, and each question is an event.
        """
        deadline = time.monotonic() + timeout_s
        window = self._root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        try:
            while time.monotonic() < deadline:
                if self._property(self._root, "_NET_SUPPORTING_WM_CHECK"):
                    self._tell(window.id, "_NET_REQUEST_FRAME_EXTENTS", [0, 0, 0, 0, 0])
                    if self._property(window, "_NET_FRAME_EXTENTS"):
                        return True
                time.sleep(0.005)
            return False
        finally:
            window.destroy()
            self._display.sync()

    def active_class(self) -> str:
        """Return the class of the window in front in lower case; "" if there is none."""
        with self._lock:
            ids = self._property(self._root, "_NET_ACTIVE_WINDOW")
            return self._class(ids[0]) if ids and ids[0] else ""

    def active_pid(self) -> int:
        """Return the process of the window in front, as its program says; 0 if there is none."""
        with self._lock:
            ids = self._property(self._root, "_NET_ACTIVE_WINDOW")
            if not ids or not ids[0]:
                return 0
            window = self._display.create_resource_object("window", ids[0])
            return next(iter(self._property(window, "_NET_WM_PID")), 0)

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

    def all(self) -> list[Window]:
        """Return the windows of programs, the oldest first."""
        with self._lock:
            active = self._property(self._root, "_NET_ACTIVE_WINDOW")
            ids = self._property(self._root, "_NET_CLIENT_LIST")[:_MAX_WINDOWS]
            found = (self._window(window_id, window_id in active) for window_id in ids)
            return [window for window in found if window is not None]

    def activate(self, name: str) -> None:
        """Bring a window forward; raises NotFound."""
        with self._lock:
            self._activate(self._known(name))

    def close(self, name: str) -> None:
        """Ask a window to close, as its button does: its program may ask back. Raises NotFound."""
        with self._lock:
            self._tell(self._known(name), "_NET_CLOSE_WINDOW", [X.CurrentTime, 2, 0, 0, 0])

    def _known(self, name: str) -> int:
        for window_id in self._property(self._root, "_NET_CLIENT_LIST"):
            if f"{window_id:#x}" == name:
                return window_id
        raise NotFound(f"no window {name[:20]}: it was closed")

    def _window(self, window_id: int, active: bool) -> Window | None:
        window = self._display.create_resource_object("window", window_id)
        kinds = self._property(window, "_NET_WM_WINDOW_TYPE")
        if self._display.intern_atom("_NET_WM_WINDOW_TYPE_DOCK") in kinds:
            return None  # the panel
        try:
            size = window.get_geometry()
            corner = self._root.translate_coords(window, 0, 0)
        except (error.BadWindow, error.BadDrawable):  # closed meanwhile
            return None
        return Window(
            id=f"{window_id:#x}",
            title=self._title(window),
            program=self._class(window_id),
            box=(int(corner.x), int(corner.y), int(size.width), int(size.height)),
            active=active,
        )

    def _title(self, window: object) -> str:
        for name in ("_NET_WM_NAME", "WM_NAME"):
            atom = self._display.intern_atom(name)
            try:
                found = window.get_full_property(atom, X.AnyPropertyType)  # type: ignore[attr-defined]
            except error.BadWindow:
                return ""
            if found is not None and found.value:
                raw = found.value
                latin = found.property_type == Xatom.STRING
                text = (
                    raw
                    if isinstance(raw, str)
                    else bytes(raw).decode("latin-1" if latin else "utf-8", "replace")
                )
                return "".join(c if c.isprintable() else " " for c in text[:_MAX_TITLE])
        return ""

    def _activate(self, window_id: int) -> None:
        # 2: from a pager, always obeyed
        self._tell(window_id, "_NET_ACTIVE_WINDOW", [2, X.CurrentTime, 0, 0, 0])

    def _tell(self, window_id: int, what: str, values: list[int]) -> None:
        message = event.ClientMessage(
            window=self._display.create_resource_object("window", window_id),
            client_type=self._display.intern_atom(what),
            data=(32, values),
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
