"""A lease in one pair of hands: renewed by a thread while a person or a client works at its computer."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import Error as DatabaseError
from django.db import connection

from sandbox.leasing import leases
from sandbox.models import Lease
from sandbox.provider import ActionResult, Desktop, SandboxError
from trajectory import Action

TTL = timedelta(seconds=120)
RENEW_EVERY_S = 20.0


class Held:
    """One lease's desktop with its epoch; `over` says why the lease ended, "" while it lasts."""

    def __init__(self, lease: Lease, desktop: Desktop) -> None:
        self.desktop = desktop
        self.epoch = int(lease.epoch)
        self.name = str(lease.sandbox.name)
        self.over = ""

    def perform(self, action: Action) -> ActionResult:
        """Do `action` once; raises what Desktop.perform raises, LeaseOver once the lease has ended."""
        self.check()
        return self.desktop.perform(action, epoch=self.epoch, action_id=uuid.uuid4().hex)

    def shell(self, command: str, *, timeout_ms: int) -> ActionResult:
        """Run `command` once; exit_code 124 if it had to be ended."""
        self.check()
        return self.desktop.shell(
            command, epoch=self.epoch, action_id=uuid.uuid4().hex, timeout_ms=timeout_ms
        )

    def check(self) -> None:
        """Raise LeaseOver if the lease has ended meanwhile."""
        if self.over:
            raise leases.LeaseOver(self.over)


@contextmanager
def held(lease: Lease, *, ttl: timedelta = TTL) -> Iterator[Held]:
    """Connect to the lease's computer and renew the lease until the block ends; it is not released.

    Raises LeaseOver, DesktopLost, StaleLease.
    """
    leases.renew(lease, ttl=ttl)
    desktop = leases.connect(lease)
    hold, done = Held(lease, desktop), threading.Event()
    renewing = threading.Thread(
        target=_renew, args=(lease, hold, ttl, done), name=f"renew {lease.pk}", daemon=True
    )
    renewing.start()
    try:
        yield hold
    finally:
        done.set()
        renewing.join(timeout=5)
        desktop.close()


def _renew(lease: Lease, hold: Held, ttl: timedelta, done: threading.Event) -> None:
    try:
        while not done.wait(RENEW_EVERY_S):
            try:
                leases.renew(lease, ttl=ttl)
            except SandboxError as error:
                hold.over = str(error)
                return
            except DatabaseError:
                connection.close()  # the next turn opens another; the lease lasts a few turns
    finally:
        connection.close()  # this thread's own
