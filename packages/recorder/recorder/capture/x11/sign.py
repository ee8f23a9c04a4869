"""The signs that a recording is made: a strip along the upper edge, red, amber while paused; the small window.

The strip is thin, lets clicks through and, like the window, is in no picture (`encoder.to_png`).
"""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from typing import Any

from Xlib import X, display, error
from Xlib.ext import shape

from recorder.capture.errors import CaptureError
from recorder.capture.sound import Level
from recorder.capture.x11.panel import STRIP, Controls, Panel

_RED, _AMBER = 0xD81E2C, 0xF0A400
_INPUT = 2  # ShapeInput, of SHAPE 1.1
# Another program may want to be above all as well: the two of them must not keep the computer busy.
_RAISE_S = 0.5


class Sign:
    """Windows above all others, drawn by a thread. One recorder at a time has them on a display.

    They say that a recording is made from the first moment on; `controls` is None for the strip alone.
    Raises CaptureError.
    """

    def __init__(self, name: str, controls: Controls | None) -> None:
        try:
            self._display = display.Display(name)
        except (error.DisplayError, OSError) as failure:
            raise CaptureError(f"no X server answers on {name}: {failure}") from None
        root = self._display.screen().root
        self._strip = root.create_window(
            *(0, 0, self._display.screen().width_in_pixels, STRIP, 0, X.CopyFromParent),
            override_redirect=1,
            background_pixel=_RED,
            event_mask=X.VisibilityChangeMask,
        )
        self._strip.set_wm_name("Tandem recorder")
        self._strip.set_wm_class("tandem-recorder", "Tandem-recorder")
        if self._display.has_extension("SHAPE"):
            self._strip.shape_rectangles(shape.SO.Set, _INPUT, X.Unsorted, 0, 0, [])
        self._be_the_only_one(name)
        root.change_attributes(event_mask=X.StructureNotifyMask)
        self._panel = Panel(self._display, controls) if controls else None
        self._covered: set[Any] = set()
        self._raised = -_RAISE_S
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        # Shown before anything is recorded: the first picture looks like the others.
        self._state = "recording"
        self._apply(self._state)
        self._thread = threading.Thread(target=self._run, name="sign", daemon=True)
        self._thread.start()

    def show(self, state: str) -> None:
        """Show a state: "recording", "paused", or "" for no sign at all."""
        self._state = state
        os.eventfd_write(self._wake, 1)

    def hear(self, level: Level) -> None:
        """Show how loud the voice is."""
        if self._panel:
            self._panel.hear(level)

    def note(self, text: str, *, until_changed: bool = False) -> None:
        """Show a word for a moment, or until the state is another one."""
        if self._panel:
            self._panel.note(text, until_changed=until_changed)
            os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        self._state = "closed"
        os.eventfd_write(self._wake, 1)
        self._thread.join(2)
        with suppress(error.ConnectionClosedError, OSError):
            self._display.close()

    def _be_the_only_one(self, name: str) -> None:
        """Own the selection that stands for recording this display; the server takes it from the dead."""
        selection = self._display.intern_atom("TANDEM_RECORDER")
        self._display.grab_server()
        try:
            owner = self._display.get_selection_owner(selection)
            if owner == X.NONE:
                self._strip.set_selection_owner(selection, X.CurrentTime)
        finally:
            self._display.ungrab_server()
            self._display.sync()
        if owner != X.NONE:
            self._display.close()
            raise CaptureError(
                f"another recorder records {name} already: stop it first, with Ctrl+Alt+S"
            )

    def _run(self) -> None:
        shown, wait = "recording", None
        with suppress(error.ConnectionClosedError, OSError):
            while self._state != "closed":
                if shown != self._state:
                    shown = self._state
                    self._apply(shown)
                if self._panel:
                    wait = self._panel.tick() if shown in ("recording", "paused") else None
                again = self._lift()
                waits = [w for w in (wait, again) if w is not None]
                if self._display.pending_events():
                    waits = [
                        0.0
                    ]  # read while an answer was waited for: nothing will wake us for them
                told = [self._display.fileno(), self._wake]
                select.select(told, [], [], min(waits) if waits else None)
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
                self._read_events()

    def _apply(self, state: str) -> None:
        self._strip.change_attributes(background_pixel=_RED if state == "recording" else _AMBER)
        if state:
            self._strip.map()
            self._strip.configure(stack_mode=X.Above)
            self._strip.clear_area()
        else:
            self._strip.unmap()
        if self._panel:
            self._panel.show(state)
        self._display.sync()

    def _read_events(self) -> None:
        moved = None
        while self._display.pending_events():
            event = self._display.next_event()
            if event.type == X.MotionNotify:
                moved = event  # of many only the last counts
                continue
            if moved is not None and self._panel:
                self._panel.on_event(moved)
                moved = None
            self._answer(event)
        if moved is not None and self._panel:
            self._panel.on_event(moved)

    def _answer(self, event: Any) -> None:
        if event.type == X.VisibilityNotify and event.state != X.VisibilityUnobscured:
            self._covered.add(event.window)
        elif event.type == X.ConfigureNotify and event.window == self._display.screen().root:
            self._strip.configure(width=event.width)
            if self._panel:
                self._panel.keep_inside()
        elif event.type in (X.ButtonPress, X.ButtonRelease) and self._panel:
            self._panel.on_event(event)

    def _lift(self) -> float | None:
        """Put what is covered above all others; return after how many seconds to do it at the earliest."""
        if not self._covered:
            return None
        left = self._raised + _RAISE_S - time.monotonic()
        if left > 0:
            return left
        self._raised = time.monotonic()
        for window in self._covered:
            window.configure(stack_mode=X.Above)
        self._covered.clear()
        self._display.flush()
        return None
