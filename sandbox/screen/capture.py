"""What a hand does while it has control, with the picture that it saw; no Django.

Events are stamped when they are forwarded, on the host's clock, and written in the background: at
once after a release, else within FLUSH_S. A process that dies loses at most that much.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.screen.gate import Command
from sandbox.screen.rfb import Key, Pointer

log = logging.getLogger(__name__)

FRAME_DEADLINE_S = 0.15
"""How long a press may wait for its picture; a person feels more than that."""

FLUSH_S = 0.2
KEY_PAUSE_S = 1.0
GESTURE_S = 0.5
GESTURE_PX = 6
RETRY_S = 1.0
LAST_TRIES = 5
"""How often a closing capture tries to write before it gives up, loudly."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A picture's sha256 and the trajectory.Observation record that names it."""

    sha256: str
    observation: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Captured:
    """One event as it was forwarded, `at` seconds since the epoch.

    A press that had a fresh picture has `frame`. One whose picture came too late has an
    `observation`, the one before it, and no `frame`: the reader can tell, and judge by captured_at.
    """

    at: float
    event: Key | Pointer | Command
    frame: str = ""
    observation: dict[str, Any] | None = None


class Camera(Protocol):
    """Where pictures come from and where everything goes."""

    async def snap(self) -> Snapshot:
        """Take a picture of the desktop now; may raise anything."""
        ...

    async def store(self, batch: list[Captured]) -> None:
        """Write a batch, all of it or none; it is tried again if this raises."""
        ...

    async def close(self) -> None: ...


class Capture:
    """Keeps the input of one controller: implements sandbox.screen.gate.Hand."""

    def __init__(self, camera: Camera) -> None:
        self._camera = camera
        self._batch: list[Captured] = []
        self._forwarded = 0
        self._latest: Snapshot | None = None
        self._frame: tuple[str, dict[str, Any] | None] = ("", None)
        self._snapping: asyncio.Task[None] | None = None
        self._snapping_at = -1  # how many events had been forwarded when it began
        self._move: Captured | None = None
        self._buttons = 0
        self._last: Key | Pointer | Command | None = None
        self._last_at = 0.0
        self._last_press: tuple[float, Pointer] = (0.0, Pointer(0, 0, 0))
        self._due = asyncio.Event()
        self._urgent = asyncio.Event()
        self._writing = asyncio.Lock()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Take a first picture in the background: control has just been given."""
        if self._snapping is None:
            self._start_snapping()

    def wants_frame(self, event: Key | Pointer, pressed: int) -> bool:
        """True for a press, and for the first key after the pointer or after a pause.

        The second click of a double click and the next notch of the wheel belong to the same
        gesture, which began with a picture: waiting for another would spoil it.
        """
        now = time.monotonic()
        if isinstance(event, Key):
            paused = now - self._last_at > KEY_PAUSE_S
            return event.down and (paused or not isinstance(self._last, Key))
        if not pressed:
            return False
        at, before = self._last_press
        near = abs(event.x - before.x) <= GESTURE_PX and abs(event.y - before.y) <= GESTURE_PX
        same_buttons = event.buttons == before.buttons
        return not (near and same_buttons and now - at < GESTURE_S)

    async def take_frame(self) -> None:
        """Take a picture for the next event; after FRAME_DEADLINE_S the one before stands in."""
        if self._snapping is None:
            self._start_snapping()
        before = self._latest
        # A picture that was begun before the last event was forwarded may show an older screen.
        if self._snapping is not None and self._snapping_at == self._forwarded:
            await asyncio.wait([self._snapping], timeout=FRAME_DEADLINE_S)
        latest = self._latest
        if latest is None:
            self._frame = ("", None)
        else:
            self._frame = (
                "" if latest is before else latest.sha256,
                latest.observation,
            )

    def add(self, event: Key | Pointer | Command, pressed: int) -> None:
        """Keep `event`; of the moves without a button only the last before a press is kept."""
        now = time.monotonic()
        released = isinstance(event, Command) or (isinstance(event, Key) and not event.down)
        if isinstance(event, Pointer):
            released = bool(self._buttons & ~event.buttons)
            self._buttons = event.buttons
            if not event.buttons and not released:
                self._move = Captured(time.time(), event)
                return
            if pressed:
                if self._move is not None:
                    self._batch.append(self._move)
                self._last_press = (now, event)
        self._move = None
        frame, observation = self._frame
        self._frame = ("", None)
        self._batch.append(Captured(time.time(), event, frame, observation))
        self._forwarded += 1
        self._last, self._last_at = event, now
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        self._due.set()
        if released:
            self._urgent.set()

    async def flush(self) -> None:
        """Write what has been kept so far; what can't be written is tried again later."""
        try:
            await self._write_batch()
        except Exception:
            log.exception("input events could not be written yet")

    async def close(self) -> None:
        """Write what is left; the capture takes no more."""
        self._closing = True
        self._due.set()
        self._urgent.set()
        if self._snapping is not None:
            self._snapping.cancel()
        if self._writer is not None:
            await self._writer
        await self._camera.close()

    def _start_snapping(self) -> None:
        self._snapping_at = self._forwarded
        self._snapping = asyncio.create_task(self._take())

    async def _take(self) -> None:
        try:
            self._latest = await self._camera.snap()
        except Exception:
            log.exception("no picture of the desktop; what the hand does is kept without one")
        finally:
            self._snapping = None

    async def _write(self) -> None:
        failures = 0
        while self._batch or not self._closing:
            await self._due.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._urgent.wait()
            if not self._closing:
                self._due.clear()
                self._urgent.clear()
            try:
                await self._write_batch()
                failures = 0
            except Exception:
                # The database may be away for a moment: what a hand did is not thrown away.
                failures += 1
                if self._closing and failures >= LAST_TRIES:
                    log.exception("%d input events are lost", len(self._batch))
                    return
                log.exception("input events could not be written; trying again")
                self._due.set()
                await asyncio.sleep(RETRY_S)

    async def _write_batch(self) -> None:
        async with self._writing:
            batch, self._batch = self._batch, []
            try:
                if batch:
                    await self._camera.store(batch)
            except Exception:
                self._batch = batch + self._batch
                raise
