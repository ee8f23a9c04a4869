"""The relay as Tandem runs it: `app` at /ws/desktop/, on PostgreSQL, the channel layer and blobs.

Django stays off the path of the bytes: it is asked when a screen opens, when it is looked at again,
and in the background when input is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max

from blobs import open_store
from blobs.store import sha256_of
from sandbox.leasing import leases
from sandbox.models import InputEvent, Lease, StreamTicket
from sandbox.provider import Desktop
from sandbox.screen import hints, tickets
from sandbox.screen.capture import Capture, Captured, Snapshot
from sandbox.screen.gate import Command, Grant, Hand, Hint, Refused, Standing
from sandbox.screen.rfb import Pointer
from sandbox.screen.stream import Relay
from sandbox.terminal import TerminalRelay
from trajectory import Observation, observation_to_dict

# Not on Django's one shared thread: a slow picture must not hold up somebody else's ticket.
in_thread = partial(database_sync_to_async, thread_sensitive=False)

SEQUENCE_LOCK = 0x1A9D
"""Class of the advisory locks that number a lease's input."""


class DatabaseGate:
    """Implements sandbox.screen.gate.Gate."""

    async def redeem(self, token: str) -> Grant | Refused:
        found: Grant | Refused = await in_thread(tickets.redeem)(token)
        return found

    async def look(self, grant: Grant) -> Standing | Refused:
        found: Standing | Refused = await in_thread(tickets.look)(grant)
        return found

    def hints(
        self,
        grant: Grant,
        heard: Callable[[Hint], None],
        quiet: Callable[[], Awaitable[None]],
    ) -> AbstractContextManager[None]:
        hand = grant.mode == StreamTicket.Mode.CONTROL
        return hints.listening(grant.lease_id, heard, quiet, hand=hand)

    async def announce(self, grant: Grant, socket: str) -> None:
        await hints.announce(grant.lease_id, socket)

    def hand(self, grant: Grant) -> Hand | None:
        return Capture(LeaseCamera(grant))


class LeaseCamera:
    """Pictures and rows of one lease: implements sandbox.screen.capture.Camera."""

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        self._desktop: Desktop | None = None
        self._pictures: dict[str, bytes] = {}  # taken, and not in the blob store yet

    async def snap(self) -> Snapshot:
        png, snapshot = await in_thread(self._look)()
        self._pictures[snapshot.sha256] = png
        return snapshot

    async def store(self, batch: list[Captured]) -> None:
        """Write a batch, after the pictures that it may name."""
        for sha256, png in list(self._pictures.items()):
            await asyncio.to_thread(open_store(settings.STORAGE_URL).put, png)
            del self._pictures[sha256]
        await in_thread(append)(self._grant.lease_id, batch)

    async def close(self) -> None:
        if self._desktop is not None:
            await asyncio.to_thread(self._desktop.close)

    def _look(self) -> tuple[bytes, Snapshot]:
        if self._desktop is None:
            self._desktop = leases.connect(Lease.objects.get(pk=self._grant.lease_id))
        frame = self._desktop.observe(elements=True)
        sha256 = sha256_of(frame.png)
        observation = Observation(
            screenshot=sha256,
            width=frame.width,
            height=frame.height,
            elements=frame.elements,
            url=frame.url,
            captured_at=frame.captured_at,
        )
        return frame.png, Snapshot(sha256, observation_to_dict(observation))


def append(lease_id: int, batch: list[Captured]) -> None:
    """Write input events after those that the lease has; numbers have no gap and no double."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Not the row: whoever changes the lease and waits for this input may hold it.
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [SEQUENCE_LOCK, lease_id])
        newest = InputEvent.objects.filter(lease_id=lease_id).aggregate(seq=Max("seq"))["seq"] or 0
        InputEvent.objects.bulk_create(
            _row(lease_id, seq, captured) for seq, captured in enumerate(batch, start=newest + 1)
        )


def _row(lease_id: int, seq: int, captured: Captured) -> InputEvent:
    event = captured.event
    what: dict[str, Any]
    if isinstance(event, Pointer):
        what = {"kind": "pointer", "x": event.x, "y": event.y, "buttons": event.buttons}
    elif isinstance(event, Command):
        what = {"kind": "command", "text": event.text}
    else:
        what = {"kind": "key", "keysym": event.keysym, "down": event.down}
    return InputEvent(
        lease_id=lease_id,
        seq=seq,
        at=captured.at,
        frame=captured.frame,
        observation=captured.observation,
        **what,
    )


def desktop_of(grant: Grant) -> Desktop:
    """Return the computer that a grant is for; raises DesktopLost."""
    try:
        return leases.connect(Lease.objects.get(pk=grant.lease_id))
    finally:
        connection.close()  # this thread belongs to no request


app = Relay(DatabaseGate())
terminal = TerminalRelay(DatabaseGate(), desktop_of)
