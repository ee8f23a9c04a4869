"""What every source of events is, on every system."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """A source of events with a thread of its own.

    `pause` gives up what it holds (a microphone, half a picture) and forgets what it knows; it
    returns once nothing more is taken in. `resume` begins afresh.
    """

    def start(self) -> None:
        """Raises CaptureError where this source can't be had."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...
