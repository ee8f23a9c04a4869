"""Put right what callers left: leases and requests whose time is over. Any number may run at once."""

from __future__ import annotations

import time
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone

from sandbox.leasing import ending, leases, queue
from sandbox.leasing.ending import End
from sandbox.models import Lease, Sandbox
from sandbox.screen import hints

BATCH = 100
REAP_FOR_S = 4.0
"""A run ends before the next one begins; what is left then is the next one's."""

_REAPING = 0x72656170  # "reap": the advisory lock of the one reaper at work


def reap() -> int:
    """End the leases whose time is over and refuse or withdraw late requests; return how many."""
    until, done = time.monotonic() + REAP_FOR_S, 0
    for batch in (_leases, _requests):
        while True:
            ended = batch()
            done += ended
            if ended < BATCH or time.monotonic() >= until:
                break
    return done


def _leases() -> int:
    now = timezone.now()
    late = Lease.objects.filter(state=Lease.State.ACTIVE, expires_at__lte=now)
    # Outside the transaction: a screen may take a moment to write what its hand did last.
    for pk in late.filter(human_control=True).values_list("pk", flat=True)[:BATCH]:
        hints.take_away(pk)
    with transaction.atomic():
        if not _alone():
            return 0
        rows = late.select_for_update(skip_locked=True, no_key=True).order_by("expires_at")[:BATCH]
        for lease in rows:
            over = ending.end(_end(lease, now), by="reaper", now=now, only_late=True)
            if over is not None and over.watched:
                hints.changed(lease.pk, human_control=False)
        return len(rows)


def _requests() -> int:
    with transaction.atomic():
        return queue.expire(limit=BATCH) if _alone() else 0


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_REAPING])
        return bool(cursor.fetchone()[0])


def _end(lease: Lease, now: datetime) -> End:
    if lease.hard_expires_at <= now:
        kind, why = Lease.Ending.CAP, f"its hard end was {lease.hard_expires_at:%H:%M:%S}"
    else:
        kind, why = Lease.Ending.IDLE, f"last renewed at {lease.last_activity_at:%H:%M:%S}"
    return End(
        lease.pk, Lease.State.EXPIRED, kind, f"expired: {why}",
        Sandbox.State.RESETTING, leases.RESET_WITHIN,
    )  # fmt: skip
