"""What the fleet is doing, read from the rows: figures for the pages and for Prometheus."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from sandbox.host.hosts import SILENT_AFTER
from sandbox.models import Host, Lease, LeaseRequest, Pool, Sandbox

STATES = tuple(state for state in Sandbox.State.values if state != Sandbox.State.GONE)
RECENT = timedelta(hours=24)
LOOKED_AT = 2000
_PARTICULAR = re.compile(r"\b[0-9a-f]{8,}\b|\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """A pool with its computers by state, who waits, and since when the first one does."""

    pool: Pool | None
    states: dict[str, int]
    waiting: int
    waiting_since: datetime | None

    @property
    def live(self) -> int:
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class HostFigures:
    """A host with its computers by state; `silent` if it has not been seen lately."""

    host: Host
    states: dict[str, int]
    silent: bool

    @property
    def live(self) -> int:
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class Failure:
    """A cause of failures with its numbers taken out, how often it came and when last."""

    cause: str
    count: int
    last_at: datetime
    example: Sandbox


def pools() -> list[PoolFigures]:
    """Return every pool, and computers that belong to none under None."""
    states = _states("pool_id")
    waiting = {
        row["pool_id"]: row
        for row in LeaseRequest.objects.filter(state=LeaseRequest.State.WAITING)
        .order_by()
        .values("pool_id")
        .annotate(count=Count("pk"), first=Min("enqueued_at"))
    }
    known: list[Pool | None] = [*Pool.objects.order_by("name")]
    if None in states or None in waiting:
        known.append(None)
    found = []
    for pool in known:
        key = pool.pk if pool else None
        queue = waiting.get(key, {"count": 0, "first": None})
        found.append(PoolFigures(pool, states.get(key, {}), queue["count"], queue["first"]))
    return found


def hosts() -> list[HostFigures]:
    """Return every host."""
    states = _states("host")
    late = Q(last_seen=None) | Q(last_seen__lt=Now() - SILENT_AFTER)
    silent = set(
        Host.objects.exclude(state=Host.State.DOWN).filter(late).values_list("pk", flat=True)
    )
    return [
        HostFigures(host, states.get(host.name, {}), host.pk in silent)
        for host in Host.objects.order_by("name")
    ]


def failures(*, within: timedelta = RECENT) -> list[Failure]:
    """Return why computers and leases failed lately, the most frequent cause first.

    Names, numbers and ids are taken out, so that like causes are counted together.
    """
    since = timezone.now() - within
    count: Counter[str] = Counter()
    newest: dict[str, Sandbox] = {}
    broken = Sandbox.objects.exclude(cause="").filter(
        Q(state__in=(Sandbox.State.FAILED, Sandbox.State.DESTROYING, Sandbox.State.GONE)),
        created_at__gte=since - timedelta(days=1),
    )
    for sandbox in broken.order_by("-pk")[:LOOKED_AT]:
        cause = general(sandbox.cause, sandbox.name)
        count[cause] += 1
        newest.setdefault(cause, sandbox)
    return [
        Failure(cause, times, newest[cause].ready_at or newest[cause].created_at, newest[cause])
        for cause, times in count.most_common()
    ]


def general(cause: str, name: str = "") -> str:
    """Return the first line of a cause without what differs each time."""
    first = cause.strip().splitlines()[0] if cause.strip() else ""
    if name:
        first = first.replace(name, "it")
    return _PARTICULAR.sub("…", first)[:160]


def leases() -> dict[str, int]:
    """Return how many leases are active, by purpose."""
    active = Lease.objects.filter(state=Lease.State.ACTIVE)
    found = dict(active.order_by().values_list("purpose").annotate(count=Count("pk")))
    return {purpose: found.get(purpose, 0) for purpose in Lease.Purpose.values}


def _states(by: str) -> dict[object, dict[str, int]]:
    rows = (
        Sandbox.objects.exclude(state=Sandbox.State.GONE)
        .order_by()
        .values_list(by, "state")
        .annotate(count=Count("pk"))
    )
    found: dict[object, dict[str, int]] = {}
    for key, state, count in rows:
        found.setdefault(key, {})[state] = count
    return found
