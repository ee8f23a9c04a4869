"""Pictures of the screen: taken when it has changed, kept when an action needs one of just before it.

The DAMAGE extension says when something was drawn, on the same clock that stamps the mouse and the
keys: so it is known, not guessed, that nothing was drawn between a picture and an action.
https://www.x.org/releases/current/doc/damageproto/damageproto.txt
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from Xlib import X, display, error

from recorder.capture.clock import ServerTime
from recorder.capture.errors import CaptureError
from recorder.capture.sink import Sink
from recorder.capture.x11.encoder import Encoder, Grab
from recorder.capture.x11.screen import Screen

_BOUNDING_BOX = 2  # DamageReportBoundingBox
_RING = 4
# A stamp of the server is right to 1 ms; a picture this much older than an action shows none of it.
GUARD_S = 0.002
_SETTLE_S, _GAP_S = 0.03, 0.1
# What changes while nobody acts is kept when it is quiet, and not more often than this.
_QUIET_S, _BACKGROUND_S = 0.3, 1.0
_CARET = (24, 48)


@dataclass
class _Dirt:
    """What was drawn since the newest grab: when first, on the recorder's clock, and where."""

    since: float
    left: int
    top: int
    right: int
    bottom: int


class Frames:
    """Watches one display; a thread takes pictures, another one makes them PNG."""

    def __init__(
        self, name: str, sink: Sink, time: ServerTime, *, on_loss: Callable[[str], None]
    ) -> None:
        self._name, self._sink, self._time, self._on_loss = name, sink, time, on_loss
        self._ring: deque[Grab] = deque(maxlen=_RING)
        self._asked: deque[float] = deque()
        self._lock = threading.Lock()
        self._paused = self._stopping = False
        self._dirt: _Dirt | None = None
        self._background = -_BACKGROUND_S
        self._changed_much = self._resized = False

    def start(self) -> None:
        self._screen = Screen(self._name)
        try:
            self._display = display.Display(self._name)
        except (error.DisplayError, OSError) as failure:
            raise CaptureError(f"no X server answers on {self._name}: {failure}") from None
        if not self._display.has_extension("DAMAGE"):
            raise CaptureError("this X server has no DAMAGE extension: nothing says what changed")
        self._display.damage_query_version()
        root = self._display.screen().root
        root.change_attributes(event_mask=X.StructureNotifyMask)
        self._damage = root.damage_create(_BOUNDING_BOX)
        self._notify = self._display.extension_event.DamageNotify
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._encoder = Encoder(self._sink)
        self._grab()
        self._keep_newest()
        self._thread = threading.Thread(target=self._run, name="frames", daemon=True)
        self._thread.start()

    def before(self, t: float) -> None:
        """Keep the newest picture that shows nothing of what happened at `t`; never waits."""
        self._asked.append(t)
        os.eventfd_write(self._wake, 1)

    def pause(self) -> None:
        with self._lock:
            self._paused = True
            self._ring.clear()
            self._asked.clear()

    def resume(self) -> None:
        with self._lock:
            self._paused = False
            self._grab()
            self._keep_newest()

    def stop(self) -> None:
        """Keep what the screen shows at the end."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(2)
        with self._lock:
            if not self._paused:
                with suppress(CaptureError, error.ConnectionClosedError):
                    self._grab()
                    self._keep_newest()
        self._encoder.close()
        self._screen.close()
        os.close(self._wake)

    def _run(self) -> None:
        try:
            while not self._stopping:
                select.select([self._display.fileno(), self._wake], [], [], self._timeout())
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
                with self._lock:
                    self._turn()
        except (error.ConnectionClosedError, OSError, CaptureError) as failure:
            if not self._stopping:
                self._on_loss(f"the screen can't be seen any more ({failure})")
        except Exception as failure:
            self._on_loss(f"the screen can't be seen any more ({failure!r})")

    def _turn(self) -> None:
        self._read_events()
        if self._paused:
            self._asked.clear()
            return
        while self._asked:
            self._serve(self._asked.popleft())
        due = self._due()
        if due is not None and self._sink.clock.now() >= due:
            self._grab()
        elif due is None and self._background_due():
            self._keep_newest()

    def _timeout(self) -> float | None:
        if self._paused:
            return None
        now, due = self._sink.clock.now(), self._due()
        if due is not None:
            return max(0.0, due - now)
        if self._changed_much and self._ring and not self._ring[-1].kept:
            quiet = self._ring[-1].t + _QUIET_S
            return max(0.01, max(quiet, self._background + _BACKGROUND_S) - now)
        return None

    def _due(self) -> float | None:
        """Return when the next picture is to be taken; None while nothing was drawn."""
        if self._dirt is None:
            return None
        last = self._ring[-1].t if self._ring else 0.0
        return max(self._dirt.since + _SETTLE_S, last + _GAP_S)

    def _background_due(self) -> bool:
        if not (self._changed_much and self._ring) or self._ring[-1].kept:
            return False
        now = self._sink.clock.now()
        return now - self._ring[-1].t >= _QUIET_S and now - self._background >= _BACKGROUND_S

    def _serve(self, t: float) -> None:
        # After this answer all that was drawn until now, so before `t`, has been told.
        self._display.sync()
        self._read_events()
        grab = next((g for g in reversed(self._ring) if g.t <= t - GUARD_S), None)
        if grab is None:
            return
        self._keep(grab)
        unchanged = min(t, grab.changed) - GUARD_S
        if unchanged > grab.t:
            self._encoder.repeat(grab, unchanged)

    def _read_events(self) -> None:
        while self._display.pending_events():
            event = self._display.next_event()
            if event.type == self._notify:
                self._note(event)
            elif event.type == X.ConfigureNotify:
                self._resized = True

    def _note(self, event: Any) -> None:
        area = event.area
        if self._dirt is None and self._is_own(event):
            # The server tells only of what is drawn outside of what it told already: begin again.
            # What was drawn elsewhere until it reads this has been told before.
            self._display.damage_subtract(self._damage)
            self._display.flush()
            return
        right, bottom = area.x + area.width, area.y + area.height
        if self._dirt is None:
            since = self._time.seconds(event.timestamp)
            self._dirt = _Dirt(since, area.x, area.y, right, bottom)
            if self._ring:
                self._ring[-1].changed = min(self._ring[-1].changed, since)
        dirt = self._dirt
        dirt.left, dirt.top = min(dirt.left, area.x), min(dirt.top, area.y)
        dirt.right, dirt.bottom = max(dirt.right, right), max(dirt.bottom, bottom)

    def _is_own(self, event: Any) -> bool:
        """Say whether it is our small window's: painted over anyway, and its clock changes each second."""
        area = event.area
        box = (area.x, area.y, area.width, area.height)
        return self._sink.own.holds(box, self._time.seconds(event.timestamp))

    def _grab(self) -> None:
        """Take a picture; what is drawn meanwhile is told again, and seen by the next one."""
        if self._dirt is not None:
            size = (self._dirt.right - self._dirt.left, self._dirt.bottom - self._dirt.top)
            self._changed_much |= size[0] > _CARET[0] or size[1] > _CARET[1]
        self._dirt = None
        self._display.damage_subtract(self._damage)
        self._display.sync()
        # Told before the subtraction or after it: taken for after, at the cost of one needless picture.
        self._read_events()
        if self._resized:
            self._see_anew()
        began = self._sink.clock.now()
        try:
            raw = self._screen.grab()
        except CaptureError:  # it was made smaller a moment ago
            self._see_anew()
            began = self._sink.clock.now()
            raw = self._screen.grab()
        screen = self._screen
        grab = Grab(raw, began, self._sink.clock.now(), screen.width, screen.height, screen.stride)
        if self._dirt is not None:
            grab.changed = self._dirt.since
        self._ring.append(grab)

    def _see_anew(self) -> None:
        self._resized = False
        self._screen.close()
        self._screen = Screen(self._name)
        self._ring.clear()

    def _keep(self, grab: Grab) -> None:
        if not grab.kept:
            self._encoder.encode(grab)
        if grab is self._ring[-1]:
            self._background, self._changed_much = self._sink.clock.now(), False

    def _keep_newest(self) -> None:
        self._keep(self._ring[-1])
