"""What a pool is doing and when the next computers may be free: guesses from its own recent past."""

from __future__ import annotations

from datetime import timedelta
from statistics import median

from django.db.models import Count, F
from django.utils import timezone

from sandbox.models import Lease, LeaseRequest, Pool, Sandbox

RECENT = timedelta(minutes=10)
SAMPLE = 20
ENDED = 200  # of all pools

_COMING = (Sandbox.State.PROVISIONING, Sandbox.State.RESETTING)


def eta_s(pool: int | None, *, position: int) -> float | None:
    """Return in how many seconds the caller at `position` (1 is next) may have a computer.

    Those that are coming take as long as the last ones took; after them, computers come at the
    rate at which leases ended within RECENT. None without any experience.
    """
    coming = Sandbox.objects.filter(pool_id=pool, state__in=_COMING).count()
    boot_s = _boot_s(pool)
    if coming >= position and boot_s is not None:
        return boot_s
    between_s = _between_s(pool)
    if between_s is not None:
        return (boot_s or 0.0) + max(0, position - coming) * between_s
    return _waited_s(pool)


def reason(pool: int | None) -> str:
    """Return why nothing is free, in words: what a person can act on comes first."""
    row = Pool.objects.filter(pk=pool).first() if pool is not None else None
    counts = _counts(pool)
    if row is not None and row.paused:
        return f"the pool {row.name} is paused"
    if row is not None and row.degraded_at is not None:
        return f"starts fail in the pool {row.name}: {row.degraded_cause or 'no cause given'}"
    if not counts:
        return "no computer is ready: the pool is empty; is a sandbox host running?"
    stage = (
        Sandbox.objects.filter(pool_id=pool, state=Sandbox.State.PROVISIONING)
        .exclude(cause="")
        .order_by("created_at")
        .values_list("cause", flat=True)
        .first()
    )
    said = ", ".join(f"{count} {state}" for state, count in counts)
    return f"no computer is ready: {said}" + (f" ({stage})" if stage else "")


def _counts(pool: int | None) -> list[tuple[str, int]]:
    rows = Sandbox.objects.filter(pool_id=pool).exclude(state=Sandbox.State.GONE)
    return list(rows.values_list("state").annotate(count=Count("pk")).order_by("state"))


def _boot_s(pool: int | None) -> float | None:
    """Return the median of the last boots, in seconds."""
    took = (
        Sandbox.objects.filter(pool_id=pool, ready_at__gt=F("born_at"))
        .exclude(state=Sandbox.State.GONE)
        .order_by("-ready_at")
        .values_list("born_at", "ready_at")[:SAMPLE]
    )
    seconds = [(ready - born).total_seconds() for born, ready in took]
    return median(seconds) if seconds else None


def _between_s(pool: int | None) -> float | None:
    """Return the mean time between two leases of the pool that ended lately, in seconds."""
    now = timezone.now()
    ended = list(
        Lease.objects.filter(released_at__gt=now - RECENT)
        .order_by("-released_at")
        .values_list("released_at", "sandbox__pool_id")[:ENDED]
    )
    count = sum(of == pool for _, of in ended)
    if not count:
        return None
    since = ended[-1][0] if len(ended) == ENDED else now - RECENT
    return float((now - since).total_seconds()) / count


def _waited_s(pool: int | None) -> float | None:
    """Return the median wait of the last who got a computer, in seconds."""
    granted = (
        LeaseRequest.objects.filter(pool_id=pool, state=LeaseRequest.State.GRANTED)
        .exclude(lease=None)
        .order_by("-enqueued_at")
        .values_list("enqueued_at", "lease__granted_at")[:SAMPLE]
    )
    seconds = [(got - asked).total_seconds() for asked, got in granted]
    return median(seconds) if seconds else None
