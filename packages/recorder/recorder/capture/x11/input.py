"""Mouse and keys by the RECORD extension: every event of a device, before any program sees it.

RECORD rather than XInput 2's raw events, because an event comes with its place on the screen and the
state of the modifiers and the layout. https://www.x.org/releases/current/doc/recordproto/record.html
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from Xlib import X, display, error
from Xlib.ext import record

from recorder.capture.clock import ServerTime
from recorder.capture.errors import CaptureError
from recorder.capture.sink import Sink
from recorder.capture.x11.keys import ALT, CONTROL, META, SHORTCUT, Key, Keys
from trajectory.actions import Button
from trajectory.recording import (
    Committed,
    KeyPressed,
    KeyReleased,
    Moved,
    Pressed,
    Released,
    Scrolled,
)  # fmt: skip

_BUTTONS: Mapping[int, Button] = {1: "left", 2: "middle", 3: "right", 8: "back", 9: "forward"}
_WHEEL = {4: (0, -1), 5: (0, 1), 6: (-1, 0), 7: (1, 0)}
# type, detail, sequence, time, root, event, child, root x and y, event x and y, state, same screen
_EVENT = struct.Struct("=BBHIIIIhhhhHBx")
_MAPPING = struct.Struct("=BxHBBBx")
_MOVE_S = 1 / 60
_KEY_RUN_S = 0.5
_CHANGE_KEYBOARD_MAPPING = 100

Act = Literal["press", "scroll", "key"]
Hotkeys = Mapping[str, Callable[[], None]]


class Input:
    """Listens to one display's mouse and keyboard.

    `on_act(act, t, x, y)` is called when an action may begin: what wants a picture of just before it,
    or the element at that place. `on_key(t, key, shortcut)` is called for every key, with the text
    that it types by itself. Hotkeys are letters with Ctrl+Alt; they work during a pause, and
    neither the letter nor its release is recorded.
    """

    def __init__(
        self,
        name: str,
        sink: Sink,
        *,
        on_act: Callable[[Act, float, int, int], None],
        on_key: Callable[[float, Key, bool], None],
        hotkeys: Hotkeys,
        on_loss: Callable[[str], None],
    ) -> None:
        self._name, self._sink = name, sink
        self._on_act, self._on_key = on_act, on_key
        self._hotkeys, self._on_loss = hotkeys, on_loss
        self._held: dict[int, str] = {}  # keycode -> name
        self._swallowed: set[int] = set()
        self._moved: Moved | None = None
        self._move_written = self._last_key = -1.0
        self._scrolling = self._listening = False
        self._stopping = threading.Event()
        self._asking = threading.Lock()

    def prepare(self) -> None:
        """Connect and compare the clocks: `time` is there afterwards. Raises CaptureError."""
        try:
            self._control = display.Display(self._name)
            self._data = display.Display(self._name)
        except (error.DisplayError, OSError) as failure:
            raise CaptureError(f"no X server answers on {self._name}: {failure}") from None
        if not self._data.has_extension("RECORD"):
            raise CaptureError("this X server has no RECORD extension: mouse and keys can't be had")
        self.time = ServerTime(self._sink.clock, self._stamper())
        self._keys = Keys(self._name)

    def start(self) -> None:
        ranges = [_range(X.KeyPress, X.MotionNotify)]
        self._context = self._data.record_create_context(0, [record.AllClients], ranges)
        self._thread = threading.Thread(target=self._run, name="input", daemon=True)
        self._listening = True
        self._thread.start()

    def compare(self) -> None:
        """Compare the display's clock with ours again."""
        with self._asking:
            if not self._stopping.is_set():
                self.time.measure()

    def pause(self) -> None:
        self._listening = False

    def resume(self) -> None:
        self._held.clear()
        self._moved = None
        self._keys.forget()
        self._listening = True

    def stop(self) -> None:
        self._stopping.set()
        self._flush_move()
        with self._asking, suppress(error.ConnectionClosedError, OSError):
            self._control.record_disable_context(self._context)
            self._control.sync()
            self._thread.join(2)
            self._control.close()

    def _run(self) -> None:
        try:
            self._data.record_enable_context(self._context, self._on_reply)
            self._data.record_free_context(self._context)
        except (error.ConnectionClosedError, OSError) as failure:
            if not self._stopping.is_set():
                self._on_loss(f"the X server is gone ({failure})")
        except Exception as failure:  # told without its words: they may be what was typed
            self._on_loss(f"mouse and keys can't be read any more ({type(failure).__name__})")

    def _on_reply(self, reply: Any) -> None:
        data = bytes(reply.data)
        if reply.category == record.FromClient:
            self._keys.lend(data)
        elif reply.category == record.FromServer:
            for offset in range(0, len(data) - 31, 32):
                self._on_event(data[offset : offset + 32])

    def _on_event(self, raw: bytes) -> None:
        kind = raw[0] & 0x7F
        if kind == X.MappingNotify:
            _, _, request, first, count = _MAPPING.unpack_from(raw)
            if request == X.MappingKeyboard:
                self._keys.changed(first, count)
            return
        _, code, _, stamp, _, _, _, x, y, _, _, state, _ = _EVENT.unpack(raw)
        t = self.time.seconds(stamp)
        if kind in (X.KeyPress, X.KeyRelease) and self._hotkey(kind, code, state):
            return
        if not self._listening:
            return
        if kind == X.MotionNotify:
            self._move(t, x, y)
            return
        self._flush_move()
        match kind:
            case X.KeyPress:
                self._key(t, code, state, x, y)
            case X.KeyRelease:
                # A key may have lost its meaning by now: it comes up with the name that it went down with.
                if name := self._held.pop(code, ""):
                    self._sink.put(KeyReleased(t, name))
            case X.ButtonPress if code in _BUTTONS:
                self._on_act("press", t, x, y)
                self._sink.put(Pressed(t, x, y, _BUTTONS[code]))
            case X.ButtonRelease if code in _BUTTONS:
                self._sink.put(Released(t, x, y, _BUTTONS[code]))
            case X.ButtonPress if code in _WHEEL:
                if not self._scrolling:
                    self._on_act("scroll", t, x, y)
                dx, dy = _WHEEL[code]
                self._sink.put(Scrolled(t, x, y, dx, dy))
        self._scrolling = kind in (X.ButtonPress, X.ButtonRelease) and code in _WHEEL

    def _move(self, t: float, x: int, y: int) -> None:
        self._moved, self._scrolling = Moved(t, x, y), False
        if t - self._move_written >= _MOVE_S:
            self._move_written = t
            self._flush_move()

    def _flush_move(self) -> None:
        if self._moved is not None:
            self._sink.put(self._moved)
            self._moved = None

    def _key(self, t: float, code: int, state: int, x: int, y: int) -> None:
        key = self._keys.pressed(code, state)
        repeat = code in self._held
        self._held[code] = key.name
        # Within a run of typing no key needs a picture of its own; what does something does.
        if not repeat and (t - self._last_key > _KEY_RUN_S or not _types(key, state)):
            self._on_act("key", t, x, y)
        self._last_key = t
        self._on_key(t, key, bool(state & SHORTCUT))
        if key.name:
            self._sink.put(KeyPressed(t, key.name, key.text, repeat))
        if key.committed or (key.text and not key.name):
            self._sink.put(Committed(t, key.committed or key.text))

    def _hotkey(self, kind: int, code: int, state: int) -> bool:
        if kind == X.KeyRelease:
            ours = code in self._swallowed
            self._swallowed.discard(code)
            return ours
        if state & (CONTROL | ALT | META) != CONTROL | ALT:
            return False
        action = self._hotkeys.get(self._keys.name(code, state))
        if action is None:
            return False
        if code not in self._swallowed:  # else it repeats
            self._swallowed.add(code)
            action()
        return True

    def _stamper(self) -> Callable[[], int]:
        """Return what asks the server for its time: a property that changes comes with a stamp."""
        control = self._control
        window = control.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        window.change_attributes(event_mask=X.PropertyChangeMask)
        name = control.intern_atom("TANDEM_TIME")
        kind = control.intern_atom("CARDINAL")

        def stamp() -> int:
            window.change_property(name, kind, 32, [0])
            while True:
                event = control.next_event()
                if event.type == X.PropertyNotify and event.window == window:
                    return int(event.time)

        return stamp


def _types(key: Key, state: int) -> bool:
    return bool(key.text or key.committed) or key.name in ("shift", "backspace")


def _range(first: int, last: int) -> dict[str, Any]:
    return {
        "core_requests": (_CHANGE_KEYBOARD_MAPPING, _CHANGE_KEYBOARD_MAPPING),
        "core_replies": (0, 0),
        "ext_requests": (0, 0, 0, 0),
        "ext_replies": (0, 0, 0, 0),
        "delivered_events": (X.MappingNotify, X.MappingNotify),
        "device_events": (first, last),
        "errors": (0, 0),
        "client_started": False,
        "client_died": False,
    }
