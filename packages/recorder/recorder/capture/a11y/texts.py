"""What goes into the text that has the focus, and what input methods made of keys there."""

from __future__ import annotations

import time
from collections import deque

from jeepney import HeaderFields, Message

from recorder.capture.a11y.bus import Bus, Node
from recorder.capture.a11y.tree import Tree, Widget
from recorder.capture.composing import Composing
from recorder.capture.sink import Sink
from recorder.capture.x11.keys import Key

_KEYS = 1000
_TOLD_S = 0.3  # a program begins to tell within this time after it was asked
_ASK_S = 0.1


class Texts:
    """Follows one widget at a time, and none that may hold a password; for one thread, but for `typed`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._keys: deque[tuple[float, Key, bool]] = deque(maxlen=_KEYS)
        self._node: Node | None = None
        self._composing = Composing(shows_preedit=True)
        self._since = 0.0

    def typed(self, t: float, key: Key, shortcut: bool) -> None:
        """A key went down; never waits."""
        if self._node is not None:
            self._keys.append((t, key, shortcut))

    def focus(self, bus: Bus, tree: Tree, widget: Widget | None) -> None:
        """Another widget has the focus; None where nobody knows which."""
        wanted = widget.node if widget and _open(widget) else None
        if wanted == self._node:
            return
        self.forget()
        before, self._node = self._node, wanted
        self._keys.clear()
        if before is not None:
            bus.follow(before, told=False)
        if wanted is not None:
            bus.follow(wanted, told=True)
            preedit = tree.shows_preedit(wanted.bus, time.monotonic() + _ASK_S)
            self._composing = Composing(preedit)
            self._since = self._sink.clock.now() + _TOLD_S

    def lost(self) -> None:
        """The bus is gone."""
        self.forget()
        self._node = None

    def forget(self) -> None:
        """Something was done that may put text in by itself."""
        self._take_keys()
        self._settle()
        self._composing.forget()

    def take(self, signal: Message) -> None:
        """Take a signal of the bus; one that is not of the widget is left alone."""
        fields, body = signal.header.fields, signal.body
        node = Node(str(fields.get(HeaderFields.sender)), str(fields.get(HeaderFields.path)))
        if node != self._node or len(body) < 4 or not isinstance(body[3], tuple):
            return
        self._take_keys()
        text = body[3][1]
        if not isinstance(text, str):
            return
        if body[0] == "insert":
            self._composing.inserted(self._sink.clock.now(), text)
        elif body[0] == "delete":
            self._composing.deleted(text)

    def wait(self) -> float | None:
        """Return in how many seconds `settle` has something to say."""
        due = self._composing.due
        return None if due is None else max(0.0, due - self._sink.clock.now())

    def settle(self) -> None:
        if self._composing.due is not None and not self.wait():
            self._take_keys()
            self._settle()

    def _settle(self) -> None:
        if self._composing.due is not None:
            for committed in self._composing.settle():
                self._sink.put(committed)

    def _take_keys(self) -> None:
        while self._keys:
            t, key, shortcut = self._keys.popleft()
            if t >= self._since:
                text = key.text or key.committed
                for committed in self._composing.pressed(t, key.name, text, shortcut=shortcut):
                    self._sink.put(committed)


def _open(widget: Widget) -> bool:
    return widget.editable and widget.password is False and widget.role != "terminal"
