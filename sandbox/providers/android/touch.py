"""A person at the phone: pictures of the screen while somebody looks, and RFB input as gestures.

The picture is polled by screencap: a few a second, enough to teach and to take over. A stream of scrcpy
(H.264) would be smoother and is not needed for that.
"""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Iterator

from sandbox.provider import DesktopLost
from sandbox.providers.android import gestures
from sandbox.providers.android.computer import PhoneComputer
from sandbox.providers.android.phone import Phone, Refused, pixels
from sandbox.providers.hand import Reader
from sandbox.providers.screen import Seen
from sandbox.screen.rfb import Key, Pointer
from trajectory import Action, KeyDown, KeyUp, MouseDown, MouseUp, Move, Scroll
from trajectory.keys import MODIFIERS

_QUALITY = 80
_BUSY_S, _IDLE_S = 0.05, 0.4
_TAP_PX, _TAP_S, _MOST_MS = 12, 0.5, 5000
_WAITING = 200


class View:
    """The phone's screen as JPEGs; without a watcher the phone is left alone."""

    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self._watchers: list[Seen] = []
        self._changed = threading.Condition()
        self._newest = self._png = b""
        threading.Thread(target=self._run, name="view", daemon=True).start()

    def watch(self, seen: Seen) -> None:
        """Tell `seen` of every new picture, beginning with the newest there is."""
        with self._changed:
            self._watchers.append(seen)
            self._changed.notify()
            if self._newest:
                seen(self._newest)

    def unwatch(self, seen: Seen) -> None:
        with self._changed:
            self._watchers.remove(seen)

    def _run(self) -> None:
        pause, said = _BUSY_S, ""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._watchers)
            try:
                changed = self._look()
            except DesktopLost as error:
                # Half a picture, or an app that turned the screen: the next may be whole. Of a
                # phone that is gone the watch ends the process, with the cause.
                if str(error) != said:
                    said = str(error)
                    print(f"no picture of the phone: {said}", flush=True)
                changed = False
            pause = _BUSY_S if changed else min(_IDLE_S, pause * 1.5)
            time.sleep(pause)

    def _look(self) -> bool:
        png = self._phone.png()
        if png == self._png:
            return False
        out = io.BytesIO()
        size = (self._phone.width, self._phone.height)
        pixels(png, size).save(out, "JPEG", quality=_QUALITY)
        self._png = png
        with self._changed:
            self._newest = out.getvalue()
            for seen in self._watchers:
                seen(self._newest)
        return True


class Hand:
    """Gathers what a person's mouse does into taps, long presses and swipes, sent in order."""

    def __init__(self, computer: PhoneComputer, phone: Phone) -> None:
        self._computer, self._phone, self._reader = computer, phone, Reader()
        self._fingers = gestures.Screen(phone.width, phone.height)
        self._pressed: tuple[float, int, int] | None = None
        self._at = (0, 0)
        self._held: list[str] = []
        self._waiting: queue.Queue[tuple[str, str]] = queue.Queue(_WAITING)
        threading.Thread(target=self._run, name="hand", daemon=True).start()

    def act(self, event: Key | Pointer) -> None:
        """Take note of `event`; what a slow phone has no room for is dropped. Never blocks."""
        for made in self._reader.read(event):
            try:
                for word in self._words(made.action):
                    self._waiting.put_nowait(word)
            except (ValueError, queue.Full) as error:
                print(f"not sent to the phone: {error!r}", flush=True)

    def _words(self, action: Action) -> Iterator[tuple[str, str]]:
        match action:
            case Move(x=x, y=y):
                self._at = (x, y)
            case MouseDown(button="left"):
                self._pressed = (time.monotonic(), *self._at)
            case MouseUp(button="left") if self._pressed is not None:
                yield "line", self._gesture(*self._pressed)
                self._pressed = None
            case MouseUp(button="right"):
                yield "line", f"input keyevent {gestures.BACK}"
            case Scroll(x=x, y=y, dx=dx, dy=dy):
                yield "line", self._fingers.scroll(x, y, dx * 2, dy * 2)
            case KeyDown(key=key) if key in MODIFIERS:
                self._held.append(key)
            case KeyUp(key=key) if key in self._held:
                self._held.remove(key)
            case KeyDown(key=key):
                yield from self._key(key)

    def _key(self, key: str) -> Iterator[tuple[str, str]]:
        held = [name for name in self._held if name != "shift"]
        if held:
            yield "line", gestures.keys((*held, key))
        elif len(key) == 1 or key == "space":
            yield "text", " " if key == "space" else key
        else:
            yield "line", gestures.keys((key,))

    def _gesture(self, since: float, x: int, y: int) -> str:
        took = time.monotonic() - since
        end_x, end_y = self._at
        ms = max(50, min(_MOST_MS, int(took * 1000)))
        if abs(end_x - x) <= _TAP_PX and abs(end_y - y) <= _TAP_PX:
            if took < _TAP_S:
                return self._fingers.tap(x, y, button="left", count=1, modifiers=())
            return self._fingers.hold(x, y, ms)
        self._fingers.touch("UP", end_x, end_y)  # on the screen?
        return f"input swipe {x} {y} {end_x} {end_y} {ms}"

    def _run(self) -> None:
        while True:
            kind, word = self._waiting.get()
            try:
                if kind == "text":
                    self._computer.type(word + self._more_text())
                else:
                    self._phone.do(word)
            except (Refused, ValueError) as error:
                print(f"the phone refused a hand: {error}", flush=True)
            except DesktopLost:
                return

    def _more_text(self) -> str:
        """Return the letters that wait behind the first: together they are one command."""
        text = ""
        with self._waiting.mutex:
            while self._waiting.queue and self._waiting.queue[0][0] == "text":
                text += self._waiting.queue.popleft()[1]
        return text
