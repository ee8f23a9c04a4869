"""Which host starts which computer: hosts take rows that have none, the least loaded one first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from sandbox.models import Host, Pool, Sandbox
from sandbox.pool.states import COMING, START_WITHIN

FRESH = timedelta(seconds=10)
"""A host that was not seen for this long is no rival; a silent one is given up later than that."""
PREFER_FOR = timedelta(seconds=1)
"""How long a row is left to a better host. That one may have died a moment ago."""
_MEMORY_MB = 1536  # of a computer without a pool


@dataclass(frozen=True, slots=True)
class Load:
    """What a host carries: computers, their memory in MiB, and how many of them are coming."""

    host: Host
    used: int = 0
    memory_mb: int = 0
    coming: int = 0

    def room(self, memory_mb: int) -> int:
        """Return how many computers of `memory_mb` still fit."""
        slots = self.host.slots - self.used
        if self.host.memory_mb:
            slots = min(slots, (self.host.memory_mb - self.memory_mb) // max(1, memory_mb))
        return max(0, slots)

    def may_start(self, memory_mb: int) -> bool:
        return self.coming < self.host.starting_limit and self.room(memory_mb) > 0

    @property
    def share(self) -> float:
        """How full the host is: the fuller of its slots and its memory."""
        slots = self.used / max(1, self.host.slots)
        memory = self.memory_mb / self.host.memory_mb if self.host.memory_mb else 0.0
        return max(slots, memory)


def loads(provider: str) -> list[Load]:
    """Return every host that is up, was seen lately and has `provider`, with what it carries."""
    hosts = Host.objects.filter(
        state=Host.State.UP,
        last_seen__gt=Now() - FRESH,
        providers__contains=[provider],
    )
    carried = {
        row["host"]: row
        for row in Sandbox.objects.exclude(state=Sandbox.State.GONE)
        .filter(host__in=[host.name for host in hosts])
        .values("host")
        .annotate(
            used=Count("pk"),
            memory=Sum(Coalesce("pool__memory_mb", _MEMORY_MB)),
            coming=Count("pk", filter=Q(state__in=COMING)),
        )
    }
    found = []
    for host in hosts:
        row = carried.get(host.name)
        found.append(Load(host, row["used"], row["memory"], row["coming"]) if row else Load(host))
    return found


def room(pool: Pool) -> int:
    """Return how many more computers of the pool its hosts can carry, those without a host included."""
    return sum(load.room(pool.memory_mb) for load in loads(pool.provider))


def take(host: Host) -> Sandbox | None:
    """Give `host` the next computer that has no host; None if there is none that it should start.

    SKIP LOCKED: two hosts never take the same row. A row is left alone for a moment where a less loaded
    host could start it now.
    """
    wanted = Sandbox.objects.filter(
        host="", state=Sandbox.State.PROVISIONING, provider__in=host.providers
    )
    if not wanted.exists():
        return None
    with transaction.atomic():
        row = (
            wanted.select_for_update(skip_locked=True, of=("self",))
            .select_related("pool")
            .order_by("pk")
            .first()
        )
        if row is None or not _ours(row, host):
            return None
        row.host = host.name
        row.state_deadline = timezone.now() + START_WITHIN
        row.save(update_fields=["host", "state_deadline"])
        return row


def _ours(row: Sandbox, host: Host) -> bool:
    memory_mb = row.pool.memory_mb if row.pool else _MEMORY_MB
    able = [load for load in loads(row.provider) if load.may_start(memory_mb)]
    mine = next((load for load in able if load.host.pk == host.pk), None)
    if mine is None:
        return False
    if timezone.now() - row.created_at > PREFER_FOR:
        return True
    return all(mine.share <= load.share for load in able)
