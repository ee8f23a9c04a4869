"""A page of a headless Chromium as a Desktop, as far as games need one."""

from __future__ import annotations

import base64
import time

from guest.page import Page, PageError
from sandbox.provider import ActionFailed, ActionResult, Frame
from trajectory import Action, Click, Drag, Hotkey, Navigate, Wait

_KEYS = {"left": 37, "up": 38, "right": 39, "down": 40, "space": 32}
_NAMES = {"left": "ArrowLeft", "up": "ArrowUp", "right": "ArrowRight", "down": "ArrowDown"}


class GamePage:
    """Real mouse and keyboard input over DevTools; no shell, no files."""

    def __init__(self, port: int, width: int = 480, height: int = 640) -> None:
        self.page, self.width, self.height = Page(port, timeout=10.0), width, height
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.page.call("Emulation.setDeviceMetricsOverride", size)

    def evaluate(self, expression: str) -> object:
        try:
            return self.page.evaluate(expression)
        except PageError as error:
            raise ActionFailed(str(error)) from error

    def observe(self, *, elements: bool = False) -> Frame:
        png = base64.b64decode(self.page.call("Page.captureScreenshot")["data"])
        found = self.page.elements() if elements else None
        return Frame(png, self.width, self.height, found, self.page.url, time.time())

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        match action:
            case Navigate(url=url):
                self.page.navigate(url)
            case Click(x=x, y=y, button=button, count=count):
                self._mouse("mouseMoved", x, y, "none", 0)
                for number in range(1, count + 1):
                    self._mouse("mousePressed", x, y, button, number)
                    self._mouse("mouseReleased", x, y, button, number)
            case Drag(path=path):
                self._mouse("mouseMoved", *path[0], "none", 0)
                self._mouse("mousePressed", *path[0], "left", 1)
                for point in path[1:]:
                    self._mouse("mouseMoved", *point, "left", 0)
                self._mouse("mouseReleased", *path[-1], "left", 1)
            case Hotkey(keys=(key,)):
                self._key(key)
            case Wait():
                pass
            case _:
                raise ActionFailed(f"a test page can't do {action}")
        return ActionResult()

    def _mouse(self, kind: str, x: int, y: int, button: str, count: int) -> None:
        held = {"left": 1, "right": 2, "none": 0}[button] if kind != "mouseReleased" else 0
        self.page.call(
            "Input.dispatchMouseEvent",
            {"type": kind, "x": x, "y": y, "button": button, "clickCount": count, "buttons": held},
        )

    def _key(self, key: str) -> None:
        name = _NAMES.get(key, " " if key == "space" else key)
        code = _NAMES.get(key, "Space" if key == "space" else f"Key{key.upper()}")
        record = {"key": name, "code": code, "windowsVirtualKeyCode": _KEYS.get(key, 0)}
        self.page.call("Input.dispatchKeyEvent", {"type": "rawKeyDown", **record})
        self.page.call("Input.dispatchKeyEvent", {"type": "keyUp", **record})
