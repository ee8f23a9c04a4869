"""A page as a running picture: frames at 60 a second while somebody looks, JPEGs when they change."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from sandbox.provider import DesktopLost
from sandbox.providers.browser.target import Target
from sandbox.providers.screen import Seen

QUALITY = 75
_FRAME_S = 1 / 60
_PICTURE_S = 1 / 20
"""A picture costs as much as ten frames, and people see no difference beyond this."""


class View:
    """Runs the frames of one page on a thread of its own; without a watcher it does nothing."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._watchers: list[Seen] = []
        self._changed = threading.Condition()
        self._newest = b""
        self._over = False
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self._thread.start()

    def watch(self, seen: Seen) -> None:
        """Tell `seen` of every new picture, beginning with the newest there is."""
        with self._changed:
            self._watchers.append(seen)
            self._target.damaged = True  # what was painted meanwhile, nobody has been shown
            self._changed.notify()
            if self._newest:
                seen(self._newest)

    def unwatch(self, seen: Seen) -> None:
        with self._changed:
            self._watchers.remove(seen)

    def close(self) -> None:
        """End the thread; the page goes on."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        taken = 0.0
        with suppress(DesktopLost):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._over or self._watchers)
                    if self._over:
                        return
                began = time.monotonic()
                if self._target.damaged and began - taken >= _PICTURE_S:
                    taken = began
                    self._target.damaged = False
                    self._show(self._target.frame(picture=True, jpeg=QUALITY))
                else:
                    self._target.frame(picture=False)
                time.sleep(max(0.0, began + _FRAME_S - time.monotonic()))

    def _show(self, picture: bytes) -> None:
        if picture == self._newest:
            return
        with self._changed:
            self._newest = picture
            for seen in self._watchers:
                seen(picture)
