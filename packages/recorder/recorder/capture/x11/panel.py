"""The small window on an X display: above all others, moved by the mouse, never in front of the keys."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image
from Xlib import X, Xatom
from Xlib.ext import shape

from recorder.capture.clock import Clock
from recorder.capture.own import Box, Own
from recorder.capture.sound import Level
from recorder.capture.window import Face, draw, outline, pressed_at, size
from recorder.capture.window.face import LEVELS

STRIP = 4
"""Rows at the upper edge of the screen that the strip has."""
_MARGIN = 16
_SCALES = (1.0, 3.0)
_SLOPPY_PX = 4  # a press that moves no farther is none that drags
_BEAT_S, _VOICE_S = 1.0, 0.5
_NOTE_S = 1.5
_SILENT_S = 30.0  # said in tens of seconds
_BAND = 64 << 10  # bytes of a picture in one request: every server takes that
_EVENTS = X.ButtonPressMask | X.ButtonReleaseMask | X.Button1MotionMask | X.VisibilityChangeMask


@dataclass(frozen=True, slots=True)
class Controls:
    """What the window needs: `do` is called by the names "pause", "mark" and "stop" and must not wait;
    `recorded` says how many seconds are recorded by now; `home` is the monitor where it begins."""

    own: Own
    clock: Clock
    do: Mapping[str, Callable[[], None]]
    recorded: Callable[[], float]
    home: Box
    scale: float
    listening: bool


class Panel:
    """One window; for one thread, but for `hear` and `note`."""

    def __init__(self, display: Any, controls: Controls) -> None:
        self._display, self._with = display, controls
        self._scale = min(max(controls.scale, _SCALES[0]), _SCALES[1])
        self._face = Face(level=0 if controls.listening else None)
        self._drawn: Face | None = None
        self._peak, self._silent_s = 0.0, 0.0
        self._note, self._noted = "", 0.0
        # Where the press was on the screen, and the window then.
        self._drag: tuple[int, int, int, int] | None = None
        self._dragged = self._open_again = False
        self._x, self._y = self._corner()
        wide, high = size(collapsed=False, scale=self._scale)
        self.window = display.screen().root.create_window(
            *(self._x, self._y, wide, high, 0, X.CopyFromParent),
            override_redirect=1,
            event_mask=_EVENTS,
        )
        self.window.set_wm_name("Tandem recorder")
        self.window.set_wm_class("tandem-recorder", "Tandem-recorder")
        self._pen = self.window.create_gc()

    def hear(self, level: Level) -> None:
        """Show how loud it is; called from the sound's thread."""
        self._peak, self._silent_s = max(self._peak, level.peak), level.silent_s

    def note(self, text: str, *, until_changed: bool) -> None:
        """Show a word for a moment, or until the state is another one; from any thread."""
        self._note, self._noted = text, math.inf if until_changed else time.monotonic()

    def show(self, state: str) -> None:
        """Show the window for "recording" or "paused"; hide it for anything else.

        A pause opens a window that was made small, and makes it small again when it ends.
        """
        if state not in ("recording", "paused"):
            self.window.unmap()
            self._display.sync()
            self._with.own.went(self._with.clock.now())
            return
        paused = state == "paused"
        if paused != self._face.paused and (self._noted < math.inf or not paused):
            self._note = ""
        if paused and self._face.collapsed:
            self._open_again, small = True, False
        else:
            small = (self._open_again and not paused) or self._face.collapsed
            self._open_again = self._open_again and paused
        self._place(replace(self._face, paused=paused, collapsed=small))
        self.window.map()
        self.window.configure(stack_mode=X.Above)

    def tick(self) -> float | None:
        """Draw what has changed; return after how many seconds to ask again, None for not at all."""
        left = self._noted + _NOTE_S - time.monotonic() if self._note else 0.0
        if left <= 0:
            self._note = ""
        face = replace(self._face, note=self._note)
        if not face.paused and not face.collapsed:
            face = replace(face, seconds=int(self._with.recorded()))
            if face.level is not None:
                silent = int(self._silent_s // 10 * 10) if self._silent_s >= _SILENT_S else 0
                loud = min(LEVELS, round(self._peak**0.5 * LEVELS))
                face = replace(face, level=loud, silent_s=silent)
                self._peak = 0.0
        self._face = face
        if face != self._drawn:
            self._drawn = face
            self._paint(draw(face, self._scale))
        if face.paused or face.collapsed:
            return max(0.01, left) if self._note and left < math.inf else None
        return _VOICE_S if face.level is not None else _BEAT_S

    def on_event(self, event: Any) -> None:
        """Take an event of the mouse on the window."""
        if event.type == X.ButtonPress and event.detail == X.Button1:
            self._drag = (event.root_x, event.root_y, self._x, self._y)
            self._dragged = False
            down = pressed_at(event.event_x, event.event_y, self._face, self._scale)
            self._face = replace(self._face, down=down)
        elif event.type == X.MotionNotify and self._drag:
            self._move(event.root_x, event.root_y)
        elif event.type == X.ButtonRelease and event.detail == X.Button1 and self._drag:
            self._drag = None
            down = self._face.down
            self._face = replace(self._face, down="")
            over = pressed_at(event.event_x, event.event_y, self._face, self._scale)
            if self._face.collapsed and not self._dragged:
                self._place(replace(self._face, collapsed=False))
            elif down and over == down:
                self._press(down)

    def keep_inside(self) -> None:
        """Come back to a screen that has another size now."""
        self._place(self._face)

    def _press(self, button: str) -> None:
        if button == "collapse":
            self._open_again = False
            self._place(replace(self._face, collapsed=True))
        else:
            self._with.do[button]()

    def _move(self, x: int, y: int) -> None:
        assert self._drag is not None
        from_x, from_y, left, top = self._drag
        far = abs(x - from_x) > _SLOPPY_PX or abs(y - from_y) > _SLOPPY_PX
        if not self._face.down and (far or self._dragged):
            self._dragged = True
            self._x, self._y = left + x - from_x, top + y - from_y
            self._place(self._face)

    def _place(self, face: Face) -> None:
        """Put the window where and as large as it is to be; its right upper corner stays."""
        before, _ = size(collapsed=self._face.collapsed, scale=self._scale)
        wide, high = size(collapsed=face.collapsed, scale=self._scale)
        root = self._display.screen().root.get_geometry()
        x = self._x + before - wide
        self._x = max(0, min(x, root.width - wide))
        self._y = max(STRIP, min(self._y, root.height - high))
        own, clock = self._with.own, self._with.clock
        own.comes(clock.now(), (self._x, self._y, wide, high))
        self._face = face
        if self._drawn is None or self._drawn.collapsed != face.collapsed:
            self._drawn = None
            if self._display.has_extension("SHAPE"):
                rows = outline(face.collapsed, self._scale)
                kind = (shape.SO.Set, shape.SK.Bounding)
                self.window.shape_rectangles(*kind, X.YXSorted, 0, 0, rows)
        self.window.configure(x=self._x, y=self._y, width=wide, height=high)
        self.tick()
        self._display.sync()
        own.came(clock.now())

    def _paint(self, picture: Image.Image) -> None:
        """Make a picture the window's ground: the server itself draws it anew where it was covered."""
        wide, high = picture.size
        depth = self._display.screen().root_depth
        ground = self.window.create_pixmap(wide, high, depth)
        rows = max(1, _BAND // (wide * 4))
        for top in range(0, high, rows):
            band = picture.crop((0, top, wide, min(high, top + rows)))
            data = band.convert("RGBX").tobytes("raw", "BGRX")
            ground.put_image(self._pen, 0, top, wide, band.height, X.ZPixmap, depth, 0, data)
        self.window.change_attributes(background_pixmap=ground)
        self.window.clear_area()
        ground.free()
        self._display.flush()

    def _corner(self) -> tuple[int, int]:
        """Return where it begins: the right lower corner of its monitor, above what lies along the edge."""
        left, top, wide, high = self._with.home
        right, bottom = left + wide, top + high
        area = self._display.intern_atom("_NET_WORKAREA")
        found = self._display.screen().root.get_full_property(area, Xatom.CARDINAL)
        if found is not None and len(found.value) >= 4:
            x, y, work_wide, work_high = (int(v) for v in found.value[:4])
            right, bottom = min(right, x + work_wide), min(bottom, y + work_high)
        mine = size(collapsed=False, scale=self._scale)
        return right - mine[0] - _MARGIN, bottom - mine[1] - _MARGIN
