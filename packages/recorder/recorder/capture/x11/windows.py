"""The window in front by what the window manager says about it: told by events, never polled.

EWMH 1.5: https://specifications.freedesktop.org/wm-spec/latest/
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from Xlib import XK, X, Xatom, display, error
from Xlib.ext import res

from recorder.capture.errors import CaptureError
from recorder.capture.private import is_browser, is_private
from recorder.capture.sink import Sink
from trajectory.recording import WindowChanged

_TITLE, _APP = 500, 100
_PAGE_S = 1.0
_STILL_S = 0.3  # a window that was moved or resized is told once it has been still for this long
_WATCHED = ("_NET_WM_NAME", "WM_NAME", "_NET_ACTIVE_WINDOW")
_LOCKS = (0, X.LockMask, X.Mod2Mask, X.LockMask | X.Mod2Mask)


class Front(NamedTuple):
    """The window that has the input; pid is 0 where its program does not say, or runs elsewhere."""

    id: int
    app: str
    title: str
    pid: int
    bounds: tuple[int, int, int, int]


class Windows:
    """Follows one display's active window.

    `describe(front)` returns the address of the page that a browser shows, "" if there is none or
    nobody tells; it may wait, this thread alone waits with it. `letters` are the hotkeys with
    Ctrl+Alt that no other program is to see.
    """

    def __init__(
        self,
        name: str,
        sink: Sink,
        *,
        describe: Callable[[Front], str],
        letters: Sequence[str],
        on_loss: Callable[[str], None],
    ) -> None:
        self._name, self._sink = name, sink
        self._describe, self._letters, self._on_loss = describe, letters, on_loss
        self._shown: WindowChanged | None = None
        self._watched = self._told_of = 0  # windows
        self._moved: float | None = None  # when the window moved last, on the monotonic clock
        self._stopping = self._paused = self._browsing = False

    def start(self) -> None:
        try:
            self._display = display.Display(self._name)
        except (error.DisplayError, OSError) as failure:
            raise CaptureError(f"no X server answers on {self._name}: {failure}") from None
        self._root = self._display.screen().root
        self._atoms = {self._display.intern_atom(name) for name in _WATCHED}
        self._root.change_attributes(event_mask=X.PropertyChangeMask)
        self._take_hotkeys()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._look()
        self._thread = threading.Thread(target=self._run, name="windows", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused, self._shown = False, None
        os.eventfd_write(self._wake, 1)

    def stop(self) -> None:
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(2)
        with suppress(error.ConnectionClosedError, OSError):
            self._display.close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                told, _, _ = select.select(
                    [self._display.fileno(), self._wake], [], [], self._timeout()
                )
                look = not told and not self._display.pending_events()
                with suppress(BlockingIOError):
                    look |= bool(os.eventfd_read(self._wake))
                while self._display.pending_events():
                    event = self._display.next_event()
                    look |= event.type == X.PropertyNotify and event.atom in self._atoms
                    if event.type == X.ConfigureNotify:
                        self._moved = time.monotonic()
                if self._moved is not None and time.monotonic() - self._moved >= _STILL_S:
                    look = True
                if look and not self._stopping and not self._paused:
                    self._moved = None
                    self._look()
        except (error.ConnectionClosedError, OSError) as failure:
            if not self._stopping:
                self._on_loss(f"the window manager can't be heard any more ({failure})")
        except Exception as failure:  # told without its words: they may be a title's
            self._on_loss(f"windows can't be followed any more ({type(failure).__name__})")

    def _timeout(self) -> float | None:
        if (
            self._display.pending_events()
        ):  # read while an answer was waited for; select knows nothing
            return 0.0
        if self._paused:
            return None
        if self._moved is not None:
            return max(0.0, self._moved + _STILL_S - time.monotonic())
        # No event tells that a browser shows another page under the same title.
        return _PAGE_S if self._browsing else None

    def _look(self) -> None:
        t = self._sink.clock.now()
        front = self._front()
        self._watch(front.id)
        self._browsing = is_browser(front.app)
        url = self._describe(front)
        shown = self._shown
        if not url and shown and (front.id, front.title) == (self._told_of, shown.title):
            url = shown.url  # a busy browser says nothing; its page is as it was
        private = is_private(front.app, front.title, front.pid)
        seen = WindowChanged(t, front.app, front.title, front.bounds, url, private)
        if shown is None or _without_time(seen) != _without_time(shown):
            self._shown = seen if self._sink.put(seen) else None
            self._told_of = front.id

    def _front(self) -> Front:
        ids = self._property(self._root, "_NET_ACTIVE_WINDOW")
        if not ids or not ids[0]:
            return Front(0, "", "", 0, (0, 0, 0, 0))
        window = self._display.create_resource_object("window", ids[0])
        try:
            size = window.get_geometry()
            corner = self._root.translate_coords(window, 0, 0)
            names = window.get_wm_class()
        except (error.BadWindow, error.BadDrawable):  # closed meanwhile
            return Front(0, "", "", 0, (0, 0, 0, 0))
        pid = self._process(window)
        app = str(names[1]).lower()[:_APP] if names else _program(pid)
        bounds = (int(corner.x), int(corner.y), int(size.width), int(size.height))
        return Front(int(ids[0]), app, self._title(window), int(pid), bounds)

    def _process(self, window: Any) -> int:
        """Return the process that talks to the X server for a window; 0 if the server can't tell.

        The server knows it; what a window says of itself may be a number from a container or from
        another computer.
        """
        if self._display.has_extension("X-Resource"):
            with suppress(error.XError):
                spec = [{"client": window.id, "mask": res.LocalClientPIDMask}]
                for told in self._display.res_query_client_ids(spec).ids:
                    return int(told.value[0])
        return 0

    def _watch(self, window_id: int) -> None:
        if window_id == self._watched:
            return
        self._watched = window_id
        if window_id:
            window = self._display.create_resource_object("window", window_id)
            catch = error.CatchError(error.BadWindow)
            window.change_attributes(
                event_mask=X.PropertyChangeMask | X.StructureNotifyMask, onerror=catch
            )
            self._display.flush()

    def _title(self, window: Any) -> str:
        for name in ("_NET_WM_NAME", "WM_NAME"):
            atom = self._display.intern_atom(name)
            with suppress(error.BadWindow):
                found = window.get_full_property(atom, X.AnyPropertyType)
                if found is not None and found.value:
                    raw = found.value
                    coding = "latin-1" if found.property_type == Xatom.STRING else "utf-8"
                    text = raw if isinstance(raw, str) else bytes(raw).decode(coding, "replace")
                    return "".join(c if c.isprintable() else " " for c in text[:_TITLE])
        return ""

    def _property(self, window: Any, name: str) -> list[int]:
        try:
            found = window.get_full_property(self._display.intern_atom(name), X.AnyPropertyType)
        except error.BadWindow:
            return []
        return [int(v) for v in found.value] if found else []

    def _take_hotkeys(self) -> None:
        """Keep the hotkeys from other programs; where one has them already, both hear them."""
        for letter in self._letters:
            code = self._display.keysym_to_keycode(XK.string_to_keysym(letter))
            for locks in _LOCKS:
                self._root.grab_key(
                    *(code, X.ControlMask | X.Mod1Mask | locks, False),
                    *(X.GrabModeAsync, X.GrabModeAsync),
                    onerror=error.CatchError(error.BadAccess),
                )
        self._display.sync()


def _program(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip().lower()
    return ""


def _without_time(event: WindowChanged) -> tuple[object, ...]:
    return event.app, event.title, event.bounds, event.url, event.private
