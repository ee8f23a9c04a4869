"""The computer that a session holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock

from annotation.models import Session
from sandbox.leasing import leases
from sandbox.logs import about
from sandbox.models import Lease
from sandbox.provider import Desktop, DesktopLost

# Longer than a session's grace time, so that the session ends first and its steps are kept.
TTL = timedelta(seconds=180)

# One connection per lease and process: making one costs more than a step may take.
_connected: dict[int, Desktop] = {}
_lock = Lock()


def lease_of(session: Session) -> Lease:
    """Return the session's active lease; raises DesktopLost if it has none."""
    lease = session.lease
    if lease is None or lease.state != Lease.State.ACTIVE:
        raise DesktopLost(f"session {session.pk} holds no computer")
    return lease


@contextmanager
def of(session: Session) -> Iterator[Desktop]:
    """Yield the session's computer, fenced; a connection that turns out to be dead is forgotten."""
    lease = lease_of(session)
    with _lock:
        desktop = _connected.get(lease.pk)
    if desktop is None:
        try:
            desktop = leases.connect(lease)
        except leases.LeaseOver as over:
            raise DesktopLost(str(over)) from over
        mine = desktop
        with _lock:
            desktop = _connected.setdefault(lease.pk, mine)
            others = set(_connected) - {lease.pk}
        if desktop is not mine:  # another thread was quicker, and may be using its own now
            mine.close()
        _forget_ended(others)
    try:
        with about(sandbox=lease.sandbox.name, lease=lease.pk, epoch=lease.epoch):
            yield desktop
    except DesktopLost:
        forget(lease)
        raise


def forget(lease: Lease) -> None:
    """Close the connection to a lease's computer, if this process has one."""
    _close(lease.pk)


def _forget_ended(lease_ids: set[int]) -> None:
    """Close what other processes have ended: most sessions end elsewhere than they began."""
    held = Lease.objects.filter(pk__in=lease_ids, state=Lease.State.ACTIVE)
    for lease_id in lease_ids - set(held.values_list("pk", flat=True)):
        _close(lease_id)


def _close(lease_id: int) -> None:
    with _lock:
        desktop = _connected.pop(lease_id, None)
    if desktop is not None:
        desktop.close()
