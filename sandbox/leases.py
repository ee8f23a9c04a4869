"""Who holds which computer, and for how long: the only code that changes a Lease.

Every change of owner raises the sandbox's epoch; the guest and the relay refuse an older one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Count, F
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from sandbox import hints, providers
from sandbox.models import Lease, Sandbox, StreamTicket
from sandbox.provider import Desktop, SandboxError

TTL = timedelta(seconds=120)
HARD_TTL = timedelta(hours=8)
WRITE_EVERY = timedelta(seconds=15)
RESET_WITHIN = timedelta(seconds=120)


class NoCapacity(SandboxError):
    """No computer is ready; the message says what the pool is doing."""


class LeaseOver(SandboxError):
    """The lease is not active any more; the message says since when and why."""


class KeyTaken(SandboxError):
    """The idempotency key belongs to somebody else's lease."""


def acquire(
    *,
    owner: User | None,
    purpose: str,
    idempotency_key: str,
    ttl: timedelta = TTL,
    hard_ttl: timedelta = HARD_TTL,
) -> Lease:
    """Lease the computer that has been ready longest; raises NoCapacity.

    The same key returns the same lease, active or over: look at its `state`. The guest learns the
    new epoch from `connect`.
    """
    known = _of_key(idempotency_key, owner)
    if known is not None:
        return known
    now = timezone.now()
    try:
        with transaction.atomic():
            sandbox = (
                Sandbox.objects.select_for_update(skip_locked=True)
                .filter(state=Sandbox.State.READY)
                .order_by("ready_at", "pk")
                .first()
            )
            if sandbox is None:
                raise NoCapacity(_what_the_pool_does())
            sandbox.epoch += 1
            sandbox.state = Sandbox.State.LEASED
            sandbox.state_deadline = None
            sandbox.save(update_fields=["epoch", "state", "state_deadline"])
            return Lease.objects.create(
                sandbox=sandbox,
                epoch=sandbox.epoch,
                owner=owner,
                purpose=purpose,
                idempotency_key=idempotency_key,
                expires_at=now + min(ttl, hard_ttl),
                hard_expires_at=now + hard_ttl,
            )
    except IntegrityError:
        # Another process was first with the same key; what we locked is free again.
        known = _of_key(idempotency_key, owner)
        if known is None:
            raise
        return known


def connect(lease: Lease) -> Desktop:
    """Return the lease's desktop, fenced: whoever holds an older epoch is refused from now on.

    Raises LeaseOver, DesktopLost, StaleLease.
    """
    lease = Lease.objects.select_related("sandbox").get(pk=lease.pk)
    if lease.state != Lease.State.ACTIVE or lease.sandbox.epoch != lease.epoch:
        raise _over(lease)
    name = lease.sandbox.provider
    provider = providers.load(name, state=settings.STATE_DIR / "sandboxes" / name)
    desktop = provider.connect(lease.sandbox.as_handle())
    try:
        desktop.fence(lease.epoch)
    except BaseException:
        desktop.close()
        raise
    return desktop


def renew(lease: Lease, *, ttl: timedelta = TTL) -> None:
    """Keep the lease for `ttl` from now; never shortens it and never passes its hard end.

    Cheap to call often: the row is written every WRITE_EVERY. Raises LeaseOver.
    """
    now = timezone.now()
    active = Lease.objects.filter(
        pk=lease.pk, epoch=lease.epoch, state=Lease.State.ACTIVE, expires_at__gt=now
    )
    due = active.filter(last_activity_at__lte=now - WRITE_EVERY) | active.filter(
        expires_at__lt=now + ttl - WRITE_EVERY, hard_expires_at__gt=F("expires_at")
    )
    written = due.update(
        expires_at=Greatest(F("expires_at"), Least(now + ttl, F("hard_expires_at"))),
        last_activity_at=now,
    )
    if not written and not active.exists():
        raise _over(Lease.objects.select_related("sandbox").get(pk=lease.pk))


def give_control(lease: Lease, *, human: bool) -> None:
    """Let the owner's hand type, or let it no more; raises LeaseOver.

    Taking control away takes effect before the row is written: the relay drops input, lets go of
    what is down and writes what it has captured, so that the caller can read it next.
    """
    if not human:
        _stop_hand(lease)
    changed = Lease.objects.filter(pk=lease.pk, epoch=lease.epoch, state=Lease.State.ACTIVE).update(
        human_control=human
    )
    if changed:
        lease.human_control = human
        hints.changed(lease.pk, human_control=human)
    elif human:
        raise _over(Lease.objects.select_related("sandbox").get(pk=lease.pk))


def release(lease: Lease, *, reason: str) -> Lease:
    """End the lease and send its computer to be reset; does nothing to one that is over."""
    return _end(lease, Lease.State.RELEASED, reason, Sandbox.State.RESETTING)


def lose(lease: Lease, *, cause: str) -> Lease:
    """End a lease whose computer broke; the computer is FAILED and keeps `cause`."""
    return _end(lease, Lease.State.LOST, cause, Sandbox.State.FAILED)


def reap(*, limit: int = 100) -> int:
    """End the leases whose time is over; return how many. Any number may run at once."""
    now = timezone.now()
    with transaction.atomic():
        late = list(
            Lease.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(state=Lease.State.ACTIVE, expires_at__lte=now)
            .order_by("expires_at")[:limit]
        )
        for lease in late:
            _end(
                lease,
                Lease.State.EXPIRED,
                _why_late(lease, now),
                Sandbox.State.RESETTING,
            )
    return len(late)


def _end(lease: Lease, state: str, reason: str, sandbox_state: str) -> Lease:
    _stop_hand(lease)
    now = timezone.now()
    with transaction.atomic():
        ended = Lease.objects.filter(
            pk=lease.pk, epoch=lease.epoch, state=Lease.State.ACTIVE
        ).update(
            state=state,
            released_at=now,
            release_reason=reason[:200],
            human_control=False,
        )
        if ended:
            # The epoch rises first: a late caller is refused while the computer is being reset.
            Sandbox.objects.filter(pk=lease.sandbox_id, epoch=lease.epoch).update(
                epoch=F("epoch") + 1,
                state=sandbox_state,
                state_deadline=now + RESET_WITHIN,
                cause=reason if sandbox_state == Sandbox.State.FAILED else "",
            )
            StreamTicket.objects.filter(lease_id=lease.pk, used_at=None).delete()
            hints.changed(lease.pk, human_control=False)
    lease.refresh_from_db()
    return lease


def _stop_hand(lease: Lease) -> None:
    held = Lease.objects.filter(pk=lease.pk, state=Lease.State.ACTIVE, human_control=True)
    if held.exists():
        hints.take_away(lease.pk)


def _of_key(key: str, owner: User | None) -> Lease | None:
    lease = Lease.objects.select_related("sandbox").filter(idempotency_key=key).first()
    if lease is not None and lease.owner_id != (owner.pk if owner else None):
        raise KeyTaken(f"the idempotency key {key!r} belongs to another owner's lease")
    return lease


def _over(lease: Lease) -> LeaseOver:
    if lease.state == Lease.State.ACTIVE:
        return LeaseOver(f"lease {lease.pk} of {lease.sandbox.name} ended at {lease.expires_at}")
    return LeaseOver(
        f"lease {lease.pk} of {lease.sandbox.name} is {lease.state} since {lease.released_at}: "
        f"{lease.release_reason or 'no reason given'}"
    )


def _why_late(lease: Lease, now: datetime) -> str:
    if lease.hard_expires_at <= now:
        return f"expired: its hard end was {lease.hard_expires_at:%H:%M:%S}"
    return f"expired: last renewed at {lease.last_activity_at:%H:%M:%S}"


def _what_the_pool_does() -> str:
    rows: Any = (
        Sandbox.objects.exclude(state=Sandbox.State.GONE)
        .values_list("state")
        .annotate(count=Count("pk"))
        .order_by("state")
    )
    counts = ", ".join(f"{count} {state}" for state, count in rows)
    if not counts:
        return f"no computer is ready: the pool is empty; is a host of {_provider()!r} running?"
    return f"no computer is ready: {counts}"


def _provider() -> str:
    return str(getattr(settings, "SANDBOX_PROVIDER", "local"))
