"""Who waits for a computer, in which order, and for how long: the only code that changes a LeaseRequest.

People come before agents. Within each, turns go round the tenants: a tenant's next request gets the
turn after its last one, but none before the turn that is being served now (start-time fair queueing,
Goyal et al. 1996, with one unit per lease), so that the order is fixed when a request arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Max, Min, Q, QuerySet
from django.utils import timezone

from sandbox.leasing import audit, forecast
from sandbox.leasing.claiming import ASKING
from sandbox.models import Lease, LeaseRequest
from sandbox.provider import SandboxError

BIND_WITHIN = timedelta(minutes=15)
GONE_AFTER = timedelta(seconds=60)
"""Whoever has not asked for so long has gone; ASKING, before that, already gives the turn away."""

TOUCH_EVERY = timedelta(seconds=2)
RETRY_S = (1.0, 10.0)
PRIORITY: dict[str, int] = {Lease.Purpose.HUMAN: 0, Lease.Purpose.AGENT: 10}

_TURNS = 0x71756575  # "queu": class of the advisory locks under which turns are given, one per pool

State = LeaseRequest.State


class NoCapacity(SandboxError):
    """No computer is free now; the message says what the pool is doing.

    `position` is 1 for whoever is served next and 0 for a caller who does not wait; `eta_s` is a
    guess in seconds, None without experience; ask again after `retry_after_s` with the same key.
    """

    def __init__(
        self,
        message: str,
        *,
        position: int = 0,
        eta_s: float | None = None,
        retry_after_s: float = RETRY_S[1],
    ) -> None:
        super().__init__(message)
        self.position, self.eta_s, self.retry_after_s = position, eta_s, retry_after_s


class Refused(NoCapacity):
    """The request waited until its deadline; asking again queues anew, at the end."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands: `position` 1 is next; `eta_s` None if there is no experience yet."""

    position: int
    eta_s: float | None
    retry_after_s: float
    reason: str


def waiting(pool: int | None) -> QuerySet[LeaseRequest]:
    """Return the requests of a pool that wait, first the one whose turn it is."""
    rows = LeaseRequest.objects.filter(pool_id=pool, state=State.WAITING)
    return rows.order_by("priority", "turn", "pk")


def no_capacity(request: LeaseRequest) -> NoCapacity:
    """Return the error for a caller who has to wait, with its place."""
    where = place(request)
    eta = "" if where.eta_s is None else f", about {where.eta_s:.0f} s"
    return NoCapacity(
        f"{where.reason}; number {where.position} in the queue{eta}",
        position=where.position,
        eta_s=where.eta_s,
        retry_after_s=where.retry_after_s,
    )


def place(request: LeaseRequest) -> Place:
    """Return how many are served before `request`, when its turn may come, and what the pool does."""
    before = Q(priority__lt=request.priority) | Q(priority=request.priority) & (
        Q(turn__lt=request.turn) | Q(turn=request.turn, pk__lt=request.pk)
    )
    asking = Q(last_asked_at__gt=timezone.now() - ASKING)
    position = 1 + waiting(request.pool_id).filter(before & asking).count()
    eta_s = forecast.eta_s(request.pool_id, position=position)
    shortest, longest = RETRY_S
    retry_after_s = longest if eta_s is None else max(shortest, min(longest, eta_s / 2))
    return Place(position, eta_s, retry_after_s, forecast.reason(request.pool_id))


def ask(
    *,
    key: str,
    pool: int | None,
    owner: User | None,
    tenant: str,
    purpose: str,
) -> LeaseRequest:
    """Wait in the pool's queue, or say that one still waits; one that was over starts anew, last.

    One whose deadline has passed comes back REFUSED, once.
    """
    now = timezone.now()
    row = LeaseRequest.objects.filter(idempotency_key=key).first()
    if row is not None and _over(row):
        return _refuse(row)
    if row is not None and row.state == State.WAITING:
        if row.last_asked_at < now - TOUCH_EVERY or row.pool_id != pool:
            still = LeaseRequest.objects.filter(pk=row.pk, state=State.WAITING)
            still.update(last_asked_at=now, pool=pool)
        return row
    priority = PRIORITY[purpose]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_TURNS, pool or 0])
        row, new = LeaseRequest.objects.select_for_update().get_or_create(
            idempotency_key=key,
            defaults={
                "pool_id": pool,
                "owner": owner,
                "tenant": tenant,
                "purpose": purpose,
                "priority": priority,
                "turn": _turn(pool, priority, tenant),
                "enqueued_at": now,
                "bind_deadline": now + BIND_WITHIN,
                "last_asked_at": now,
            },
        )
        # One that was just granted is left alone; its lease is found by the key.
        if not new and row.state != State.WAITING and row.lease_id is None:
            row.state, row.reason, row.pool_id = State.WAITING, "", pool
            row.turn = _turn(pool, priority, tenant)
            row.enqueued_at = row.last_asked_at = now
            row.bind_deadline = now + BIND_WITHIN
            row.save()
    return row


def withdraw(*, key: str, reason: str) -> bool:
    """Stop waiting; False if the request was not waiting any more (it may have got its lease)."""
    row = LeaseRequest.objects.filter(idempotency_key=key).first()
    return row is not None and bool(_close([row], State.WITHDRAWN, reason))


def _over(request: LeaseRequest) -> bool:
    """Whether the request's deadline has passed and its caller has not heard so yet."""
    if request.state == State.WAITING:
        return bool(request.bind_deadline <= timezone.now())
    # Whoever has asked after the deadline has been told by `_refuse`.
    return bool(request.state == State.REFUSED and request.last_asked_at < request.bind_deadline)


def _refuse(request: LeaseRequest) -> LeaseRequest:
    """Refuse a request whose deadline has passed, if that is not done yet, and note that it is told."""
    if request.state == State.WAITING:
        _close([request], State.REFUSED, _why_refused(request))
    LeaseRequest.objects.filter(pk=request.pk, state=State.REFUSED).update(
        last_asked_at=timezone.now()
    )
    request.refresh_from_db()
    return request


def expire(*, limit: int = 100) -> int:
    """Refuse whose deadline has passed, withdraw who has stopped asking; return how many."""
    now = timezone.now()
    silent = Q(last_asked_at__lte=now - GONE_AFTER)
    with transaction.atomic():
        rows = list(
            LeaseRequest.objects.select_for_update(skip_locked=True)
            .filter(Q(bind_deadline__lte=now) | silent, state=State.WAITING)
            .order_by("pk")[:limit]
        )
        gone = [row for row in rows if row.last_asked_at <= now - GONE_AFTER]
        _close(gone, State.WITHDRAWN, "the caller stopped asking")
        for row in rows:
            if row not in gone:
                _close([row], State.REFUSED, _why_refused(row))
    return len(rows)


def _close(rows: list[LeaseRequest], state: str, reason: str) -> int:
    with transaction.atomic():
        closed = LeaseRequest.objects.filter(
            pk__in=[row.pk for row in rows], state=State.WAITING
        ).update(state=state, reason=reason)
        if closed:
            for row in rows:
                audit.record(
                    f"request.{state}", by=row.tenant, key=row.idempotency_key, reason=reason
                )
    return closed


def _why_refused(request: LeaseRequest) -> str:
    waited = (request.bind_deadline - request.enqueued_at).total_seconds()
    return f"no computer within {waited:.0f} s: {forecast.reason(request.pool_id)}"


def _turn(pool: int | None, priority: int, tenant: str) -> int:
    """Return the turn of a new request; the caller holds the lock of the pool's turns."""
    turns = waiting(pool).filter(priority=priority).order_by()
    serving = turns.aggregate(first=Min("turn"))["first"]
    last = turns.filter(tenant=tenant).aggregate(last=Max("turn"))["last"]
    return max(serving or 1, (last or 0) + 1)
