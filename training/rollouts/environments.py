"""What episodes are played in: pages of this host's browsers, and leased desktops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from django.db import connection

from sandbox.families import TaskSpec
from sandbox.leasing import leases
from sandbox.logs import about
from sandbox.models import Lease
from sandbox.provider import Desktop, SandboxError
from sandbox.providers.browser import FleetFull, PageSpec
from training.rollouts.slots import Control, Stopped

LEASE_TTL = timedelta(
    minutes=10
)  # an episode may wait for its policy, and then still has its desktop
ASK_AGAIN_S = 2.0

log = logging.getLogger(__name__)


class Pages(Protocol):
    """Gives out pages: `sandbox.providers.browser.Fleet`, or what a test puts in its place."""

    def open(self, spec: PageSpec) -> Desktop: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A desktop for one episode; `keep` has to be called now and then, so that it stays ours."""

    desktop: Desktop
    epoch: int
    keep: Callable[[], None] = lambda: None


@contextmanager
def place(
    pages: Pages, task: TaskSpec, seed: int, *, key: str, control: Control
) -> Iterator[Place]:
    """Open what `task` needs for one episode and give it back afterwards.

    Raises SandboxError, and Stopped where no desktop came free before the episode was stopped.
    `key` names this attempt: a desktop is leased once for it.
    """
    if task.surface == "desktop":
        with _leased(key, control) as found:
            yield found
        return
    page = _open(
        pages,
        PageSpec(task.width, task.height, clock=task.timed, seed=seed, origins=task.origins),
        control,
    )
    try:
        yield Place(page, 0)
    finally:
        _close(page)


def _open(pages: Pages, spec: PageSpec, control: Control) -> Desktop:
    while True:
        try:
            return pages.open(spec)
        except FleetFull:
            # Pages of another kind are open just now; that is nobody's failure.
            if control.stop.is_set():
                raise Stopped from None


@contextmanager
def _leased(key: str, control: Control) -> Iterator[Place]:
    lease: Lease | None = None
    desktop: Desktop | None = None
    reason = "the episode ended"
    try:
        lease = _acquire(key, control)
        desktop = leases.connect(lease)
        held = lease
        with about(sandbox=held.sandbox.name, lease=held.pk, epoch=held.epoch):
            yield Place(desktop, lease.epoch, lambda: leases.renew(held, ttl=LEASE_TTL))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        if desktop is not None:
            _close(desktop)
        if lease is not None:
            leases.release(lease, reason=reason)
        connection.close()  # this thread's own


def _acquire(key: str, control: Control) -> Lease:
    while True:
        try:
            return leases.acquire(owner=None, purpose="agent", idempotency_key=key, ttl=LEASE_TTL)
        except leases.NoCapacity:
            # The episode keeps its turn: desktops are few, and people come first.
            if control.stop.wait(ASK_AGAIN_S):
                raise Stopped from None


def _close(desktop: Desktop) -> None:
    try:
        desktop.close()
    except SandboxError as error:
        log.info("closing after %s in %s", error, threading.current_thread().name)
