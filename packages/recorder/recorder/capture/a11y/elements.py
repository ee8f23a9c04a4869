"""The element under the pointer at a press, and the one with the focus: asked in a thread of its own.

A question has a deadline; where nobody could tell in time, `password` is None, and that is recorded.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from jeepney import HeaderFields

from recorder.capture.a11y.bus import FAILURES, Bus, Node
from recorder.capture.a11y.texts import Texts
from recorder.capture.a11y.tree import Tree, Widget
from recorder.capture.errors import CaptureError
from recorder.capture.private import is_browser
from recorder.capture.sink import Sink
from recorder.capture.terminals.line import TERMINALS
from recorder.capture.terminals.watch import Terminals
from recorder.capture.x11.keys import Key
from recorder.capture.x11.pointed import Pointed
from recorder.capture.x11.windows import Front
from trajectory.recording import ElementSeen

_AT_S, _FOCUS_S, _PAGE_S = 0.05, 0.25, 0.3
_ASKED = 32
_AGAIN_S = 5.0  # a bus that broke is tried again after this
# A program that hears of us for the first time needs a moment before it tells anything.
_RETRIES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
_NOBODY = Widget("", "", (0, 0, 0, 0), None)


class _Press(NamedTuple):
    t: float
    x: int
    y: int


class Elements:
    """Asks the programs of one desktop; `pointed` says whose window lies under the pointer."""

    def __init__(self, sink: Sink, pointed: Pointed) -> None:
        self._sink, self._pointed = sink, pointed
        self._asked: deque[_Press | tuple[float, Front]] = deque(maxlen=_ASKED)
        self._bus: Bus | None = None
        self._tree: Tree | None = None
        self._tried = -_AGAIN_S
        self._front = Front(0, "", "", 0, (0, 0, 0, 0))
        self._texts, self._terminals = Texts(sink), Terminals(sink)
        self._retries: list[float] = []
        self._stopping = self._lost = False

    def start(self) -> None:
        self._terminals.start()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="elements", daemon=True)
        self._thread.start()

    def pressed(self, t: float, x: int, y: int) -> None:
        """A button went down there; never waits."""
        self._asked.append(_Press(t, x, y))
        self._terminals.pressed()
        os.eventfd_write(self._wake, 1)

    def typed(self, t: float, key: Key, shortcut: bool) -> None:
        """A key went down; never waits."""
        self._texts.typed(t, key, shortcut)
        self._terminals.typed(t, key.name)

    def front(self, front: Front) -> None:
        """Another window has the focus, or it has moved; never waits."""
        before, self._front = self._front, front
        if (front.id, front.bounds) != (before.id, before.bounds):
            self._asked.append((self._sink.clock.now(), front))
            os.eventfd_write(self._wake, 1)

    def pause(self) -> None:
        self._asked.clear()

    def resume(self) -> None:
        """Nothing is known of the focus after a pause: it is looked for again."""
        self._ask_again()

    def stop(self) -> None:
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(2)
        self._terminals.stop()
        if self._bus is not None:
            self._bus.close()

    def _ask_again(self) -> None:
        self._asked.append((self._sink.clock.now(), self._front))
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        while not self._stopping:
            self._connect()
            watched = [self._wake] if self._bus is None else [self._wake, self._bus.fileno()]
            select.select(watched, [], [], self._timeout())
            with suppress(BlockingIOError):
                os.eventfd_read(self._wake)
            try:
                self._turn()
            except FAILURES:  # nobody tells who has the focus, until the bus is there again
                self._bus = self._tree = None
                self._texts.lost()
                self._focus(self._sink.clock.now(), self._front, None)
                self._retries = [time.monotonic() + _AGAIN_S + _AT_S]
                self._lost = True
        self._texts.forget()

    def _timeout(self) -> float | None:
        now = time.monotonic()
        waits = [self._texts.wait(), *(max(0.0, retry - now) for retry in self._retries[:1])]
        return min((wait for wait in waits if wait is not None), default=None)

    def _connect(self) -> None:
        if self._bus is None and time.monotonic() - self._tried > _AGAIN_S:
            self._tried = time.monotonic()
            with suppress(CaptureError, *FAILURES):
                bus = Bus()
                bus.listen("object:state-changed:focused")
                self._bus, self._tree = bus, Tree(bus)
                if self._lost:
                    self._ask_again()

    def _turn(self) -> None:
        if self._bus is not None:
            self._bus.drain()
            if self._bus.dropped:
                self._bus.dropped = False
                self._ask_again()
            while self._bus.signals:
                signal = self._bus.signals.popleft()
                if signal.header.fields.get(HeaderFields.member) == "TextChanged":
                    self._texts.take(signal)
                else:
                    self._on_focus(signal)
            self._texts.settle()
        while self._asked:
            asked = self._asked.popleft()
            if isinstance(asked, _Press):
                self._at(asked)
            else:
                self._retries = [time.monotonic() + wait for wait in _RETRIES_S]
                self._look_for_focus(*asked)
        if self._retries and time.monotonic() >= self._retries[0]:
            del self._retries[0]
            self._look_for_focus(self._sink.clock.now(), self._front, again=True)

    def _on_focus(self, signal: object) -> None:
        t = self._sink.clock.now()
        body, fields = signal.body, signal.header.fields  # type: ignore[attr-defined]
        if self._tree is None or len(body) < 2 or body[0] != "focused" or body[1] != 1:
            return
        deadline = time.monotonic() + _AT_S
        node = Node(str(fields.get(HeaderFields.sender)), str(fields.get(HeaderFields.path)))
        pid = self._tree.pid(node.bus, deadline)
        if self._front.pid and not pid:
            self._ask_again()  # nobody says in time whether it is of the window in front
            return
        if self._front.pid and pid != self._front.pid:
            return
        self._focus(t, self._front, self._tree.describe(node, deadline))

    def _at(self, press: _Press) -> None:
        found, pid = None, self._pointed.pid()
        if pid == self._front.pid:  # else it is a list of candidates, perhaps
            self._texts.forget()
        if self._tree is not None:
            deadline = time.monotonic() + _AT_S
            found = self._tree.at(pid, press.x, press.y, deadline)
        self._put(press.t, found, focused=False)

    def _look_for_focus(self, t: float, front: Front, *, again: bool = False) -> None:
        found = None
        if self._tree is not None:
            found = self._tree.focused(front.pid, time.monotonic() + _FOCUS_S)
        if found is not None or not again:
            self._focus(t, front, found)

    def _focus(self, t: float, front: Front, widget: Widget | None) -> None:
        if widget is not None:
            self._retries = []
        if self._bus is not None and self._tree is not None:
            self._texts.focus(self._bus, self._tree, widget)
        if widget.role == "terminal" if widget else front.app in TERMINALS:
            self._terminals.front(front.pid, front.bounds)
            return
        self._terminals.leave()
        self._put(t, widget, focused=True)

    def _put(self, t: float, widget: Widget | None, *, focused: bool) -> None:
        seen = widget or _NOBODY
        self._sink.put(ElementSeen(t, seen.role, seen.name, seen.bounds, focused, seen.password))


class Pages:
    """Addresses of pages, for the thread that follows windows."""

    def __init__(self) -> None:
        self._tree: Tree | None = None
        self._tried = -_AGAIN_S

    def url(self, front: Front) -> str:
        """Return the address of the page that a browser shows; "" if nobody tells in 0.3 s."""
        if not is_browser(front.app):
            return ""
        if self._tree is None and time.monotonic() - self._tried > _AGAIN_S:
            self._tried = time.monotonic()
            with suppress(CaptureError):
                self._tree = Tree(Bus())
        if self._tree is None:
            return ""
        try:
            return self._tree.page(front.pid, time.monotonic() + _PAGE_S)
        except FAILURES:
            self._tree = None
            return ""
