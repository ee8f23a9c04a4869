"""The sign that a recording is made: a red strip along the upper edge; a plain word while paused.

The strip is thin, lets clicks through and is drawn over in every picture (`encoder.to_png`). Only while
nothing is captured the sign may be large.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import Any

from Xlib import X, display, error
from Xlib.ext import shape

from recorder.capture.errors import CaptureError

STRIP = 4
_BADGE = (420, 30)
_RED, _AMBER, _BLACK = 0xD81E2C, 0xF0A400, 0x000000
_INPUT = 2  # ShapeInput, of SHAPE 1.1
_WORDS = b"Tandem is paused: nothing is recorded. Ctrl+Alt+P goes on"


class Sign:
    """Two windows above all others, drawn by a thread. Raises CaptureError."""

    def __init__(self, name: str) -> None:
        try:
            self._display = display.Display(name)
        except (error.DisplayError, OSError) as failure:
            raise CaptureError(f"no X server answers on {name}: {failure}") from None
        screen = self._display.screen()
        width = screen.width_in_pixels
        self._strip = self._window(0, 0, width, STRIP, _RED)
        left = max(0, (width - _BADGE[0]) // 2)
        self._badge = self._window(left, STRIP, *_BADGE, _AMBER)
        with suppress(error.XError):
            self._pen = self._badge.create_gc(foreground=_BLACK, background=_AMBER)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._state = ""
        self._thread = threading.Thread(target=self._run, name="sign", daemon=True)
        self._thread.start()

    def show(self, state: str) -> None:
        """Show a state: "recording", "paused", or "" for no sign at all."""
        self._state = state
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        self._state = "closed"
        os.eventfd_write(self._wake, 1)
        self._thread.join(2)
        with suppress(error.ConnectionClosedError, OSError):
            self._display.close()

    def _window(self, x: int, y: int, width: int, height: int, colour: int) -> Any:
        window = self._display.screen().root.create_window(
            *(x, y, width, height, 0, X.CopyFromParent),
            override_redirect=1,
            background_pixel=colour,
            event_mask=X.ExposureMask | X.VisibilityChangeMask,
        )
        window.set_wm_name("Tandem recorder")
        window.set_wm_class("tandem-recorder", "Tandem-recorder")
        if self._display.has_extension("SHAPE"):
            window.shape_rectangles(shape.SO.Set, _INPUT, X.Unsorted, 0, 0, [])
        return window

    def _run(self) -> None:
        shown = None
        with suppress(error.ConnectionClosedError, OSError):
            while self._state != "closed":
                if shown != self._state:
                    shown = self._state
                    self._apply(shown)
                select.select([self._display.fileno(), self._wake], [], [])
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
                while self._display.pending_events():
                    self._answer(self._display.next_event())

    def _apply(self, state: str) -> None:
        self._strip.change_attributes(background_pixel=_RED if state == "recording" else _AMBER)
        for window, wanted in ((self._strip, state != ""), (self._badge, state == "paused")):
            if wanted:
                window.map()
                window.configure(stack_mode=X.Above)
                window.clear_area()
            else:
                window.unmap()
        self._write()
        self._display.sync()

    def _answer(self, event: Any) -> None:
        if event.type == X.VisibilityNotify and event.state != X.VisibilityUnobscured:
            event.window.configure(stack_mode=X.Above)
        elif event.type == X.Expose and event.window == self._badge:
            self._write()
        self._display.flush()

    def _write(self) -> None:
        if self._state == "paused":
            self._badge.image_text(self._pen, 16, 20, _WORDS)
