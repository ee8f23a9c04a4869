"""The sandbox's own Chromium, as far as the guest needs it: its page in front, by CDP on loopback.

What another window in front shows is asked of its program, over the accessibility bus.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

from guest import shell
from guest.accessibility import AccessibilityError, Tree
from guest.errors import ActionFailed
from guest.page import NoPage, Page, PageError
from guest.windows import Windows

CDP_PORT = 9222
_TIMEOUT_S = 8.0  # a busy machine; the host waits 20
_WINDOW_CLASS = "chromium"  # how its windows' class begins: Debian says Chromium-browser


class Browser:
    """Keeps one CDP connection to the page in front; a lost one is opened again."""

    def __init__(self, windows: Windows, programs: Tree, *, screen_width: int) -> None:
        self._windows, self._programs = windows, programs
        self._page = Page(CDP_PORT, timeout=_TIMEOUT_S, screen_width=screen_width)
        self._lock = threading.Lock()

    def look(self) -> tuple[str, list[dict[str, Any]]]:
        """Return (url, elements) of the page in front; ("", its elements) for another window."""
        front = self._windows.active_class()
        if front and not front.startswith(_WINDOW_CLASS):
            return "", self._window()
        with self._lock:
            try:
                view = self._page.view()
            except NoPage:
                return "", []
            except PageError as error:
                raise ActionFailed(str(error)) from error
        return view.url, [dataclasses.asdict(element) for element in view.elements]

    def _window(self) -> list[dict[str, Any]]:
        try:
            found = self._programs.elements(pid=self._windows.active_pid())
        except AccessibilityError as error:
            # A picture without elements is still an observation; the log says why it has none.
            print(f"guest: {error}", flush=True)
            return []
        return [dataclasses.asdict(element) for element in found]

    def evaluate(self, expression: str) -> object:
        """Return the value of a JavaScript expression; raises ActionFailed (no page, it threw)."""
        with self._lock:
            try:
                return self._page.evaluate(expression)
            except PageError as error:
                raise ActionFailed(str(error)) from error

    def open(self, url: str) -> None:
        """Show `url`: in the page in front if there is one, else in a browser started for it.

        A browser that has to start first goes on loading after this returns.
        """
        with self._lock:
            try:
                self._page.navigate(url)
            except NoPage:
                shell.launch(["browser", url])
                return
            except PageError as error:
                raise ActionFailed(str(error)) from error
        self._windows.raise_class(_WINDOW_CLASS)
