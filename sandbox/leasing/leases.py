"""Who holds which computer, and for how long: the only code that changes a Lease.

Every change of owner raises the sandbox's epoch; the guest and the relay refuse an older one.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from sandbox import providers
from sandbox.capabilities import Reachable
from sandbox.gateway.routes import gateway_to
from sandbox.leasing import audit, claiming, ending, fence, prepared, queue, quota
from sandbox.leasing.claiming import Seen, Wish
from sandbox.leasing.ending import End
from sandbox.leasing.queue import NoCapacity as NoCapacity
from sandbox.leasing.quota import QuotaFull as QuotaFull
from sandbox.models import Lease, LeaseRequest, Pool, Sandbox
from sandbox.provider import Desktop, DesktopLost, SandboxError
from sandbox.screen import hints

TTL = timedelta(seconds=120)
HARD_TTL = timedelta(hours=8)
GRACE = timedelta(minutes=2)
"""A person who was not heard of for the lease's ttl has so long to come back."""

CAP_WARNING = timedelta(minutes=10)
WRITE_EVERY = timedelta(seconds=15)
RESET_WITHIN = timedelta(seconds=120)
POLL_S = (0.1, 0.5)


class LeaseOver(SandboxError):
    """The lease is not active any more: `ending` is a Lease.Ending, the message says since when."""

    def __init__(self, message: str, *, ending: str = "") -> None:
        super().__init__(message)
        self.ending = ending


class KeyTaken(SandboxError):
    """The idempotency key belongs to somebody else's lease."""


class PoolRefuses(SandboxError):
    """There is no such pool, or it is not for this purpose."""


def acquire(
    *,
    owner: User | None,
    purpose: str,
    idempotency_key: str,
    pool: Pool | str | None = None,
    tenant: str = "",
    ttl: timedelta = TTL,
    hard_ttl: timedelta = HARD_TTL,
    wait_s: float = 0.0,
) -> Lease:
    """Lease the computer of `pool` (None: the default pool) that has been ready longest.

    The same key returns the same lease, active or over: look at its `state`. If none is free, the
    caller waits in the pool's queue: here for `wait_s`, then by asking again with the same key.
    Who stops asking loses the turn. The queue goes round the tenants, by default the owners.
    People get GRACE on top of `ttl`.

    The computer answered when its host last probed it; whether it still does is proved by
    `connect`, which also tells the guest the new epoch. Raises NoCapacity with the place in the
    queue (QuotaFull and queue.Refused are kinds of it), KeyTaken, PoolRefuses.
    """
    name = pool.name if isinstance(pool, Pool) else pool or Pool.DEFAULT
    wish = Wish(owner, purpose, idempotency_key, name, _whole(ttl, purpose), hard_ttl)
    until = time.monotonic() + wait_s
    pause_s, longest_s = POLL_S
    if (lease := _at_once(wish)) is not None:
        return lease
    while True:
        found, new = _try(wish, tenant or audit.actor(owner), must_exist=pool is not None)
        if isinstance(found, Lease):
            return found
        if found.state == LeaseRequest.State.REFUSED:
            raise queue.Refused(found.reason)
        if new:
            continue  # one may be there for whoever waits
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise queue.no_capacity(found)
        time.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 1.5, longest_s)


def connect(lease: Lease) -> Desktop:
    """Return the lease's desktop, fenced: whoever holds an older epoch is refused from now on.

    Raises LeaseOver, DesktopLost, StaleLease.
    """
    lease = Lease.objects.select_related("sandbox").get(pk=lease.pk)
    if lease.state != Lease.State.ACTIVE or lease.sandbox.epoch != lease.epoch:
        raise _over(lease)
    name = lease.sandbox.provider
    provider = providers.load(name, state=settings.STATE_DIR / "sandboxes" / name)
    handle, gateway = lease.sandbox.as_handle(), gateway_to(lease)
    if gateway is None:
        desktop = provider.connect(handle)
    elif isinstance(provider, Reachable):
        desktop = provider.connect_through(handle, gateway)
    else:
        raise DesktopLost(f"a {name} computer can be used on its own host only: {gateway.host}")
    try:
        desktop.fence(lease.epoch)
    except BaseException:
        desktop.close()
        raise
    return desktop


def renew(lease: Lease, *, ttl: timedelta = TTL) -> None:
    """Keep the lease for `ttl` (people: and GRACE) from now; never shortens it nor passes its hard end.

    Cheap to call often: the row is written every WRITE_EVERY. Raises LeaseOver.
    """
    now, ttl = timezone.now(), _whole(ttl, lease.purpose)
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


@dataclass(frozen=True, slots=True)
class Times:
    """When a lease runs out: at `quiet_at` its holder counts as away, at `ends_at` it is over.

    Renewing moves both, up to `capped_at`; `warn_at` is when its holder should be told.
    """

    warn_at: datetime
    quiet_at: datetime
    ends_at: datetime
    capped_at: datetime


def times(lease: Lease) -> Times:
    """Return when to warn the lease's holder, and of what."""
    quiet_at = lease.expires_at - _whole(timedelta(0), lease.purpose)
    return Times(
        warn_at=min(quiet_at, lease.hard_expires_at - CAP_WARNING),
        quiet_at=quiet_at,
        ends_at=lease.expires_at,
        capped_at=lease.hard_expires_at,
    )


def release(lease: Lease, *, reason: str, by: User | None = None) -> Lease:
    """End the lease and send its computer to be reset; does nothing to one that is over.

    Once it returns, a guest that could be reached refuses whoever held it; one that could not does so
    when its host resets it. `by` is who ends a lease that is somebody else's.
    """
    why = Lease.Ending.DONE if by is None or by.pk == lease.owner_id else Lease.Ending.ADMIN
    who = audit.actor(by) if by or lease.owner_id is None else f"user:{lease.owner_id}"
    what = End(lease.pk, Lease.State.RELEASED, why, reason, Sandbox.State.RESETTING, RESET_WITHIN)
    return _end(lease, what, by=who)


def lose(lease: Lease, *, cause: str, ending: str = Lease.Ending.COMPUTER) -> Lease:
    """End a lease whose computer or host broke; the computer is FAILED and keeps `cause`."""
    what = End(lease.pk, Lease.State.LOST, ending, cause, Sandbox.State.FAILED, RESET_WITHIN)
    return _end(lease, what, by=audit.PLATFORM)


def _end(lease: Lease, what: End, *, by: str) -> Lease:
    # Few leases end while a hand has control; the others need not look whether one does.
    if not _ended(lease, what, by, hands=False):
        _stop_hand(lease)
        if not _ended(lease, what, by, hands=True):
            lease.refresh_from_db()
    return lease


def _ended(lease: Lease, what: End, by: str, *, hands: bool) -> bool:
    over = ending.end(what, by=by, now=timezone.now(), hands=hands)
    if over is None:
        return False
    lease.state, lease.ending, lease.release_reason = what.state, what.ending, what.reason[:200]
    lease.released_at, lease.human_control = over.at, False
    lease._state.fields_cache.pop("sandbox", None)  # it has changed, too
    if over.watched:
        hints.changed(lease.pk, human_control=False)
    if what.state == Lease.State.RELEASED:
        transaction.on_commit(lambda: fence.raise_to(over), robust=True)
    return True


def _stop_hand(lease: Lease) -> None:
    held = Lease.objects.filter(pk=lease.pk, state=Lease.State.ACTIVE, human_control=True)
    if held.exists():
        hints.take_away(lease.pk)


def _at_once(wish: Wish) -> Lease | None:
    """Take a computer by one statement; None where there is more to ask, as `_try` does."""
    with suppress(IntegrityError), prepared.whole():
        return claiming.claim_at_once(wish, now=timezone.now())
    return None


def _try(wish: Wish, tenant: str, *, must_exist: bool) -> tuple[Lease | LeaseRequest, bool]:
    """Take a computer or a place in the queue, in one transaction; and whether the place is new.

    Raises QuotaFull, KeyTaken, PoolRefuses.
    """
    try:
        with transaction.atomic():
            seen = claiming.look(wish)
            lease = _known(wish) if seen.lease is not None else None
            if lease is not None:
                return lease, False
            _check(wish, seen, must_exist)
            if wish.owner is not None and seen.quota is not None:
                quota.admit(wish.owner, most=seen.quota, key=wish.key)
            lease = None if seen.pool_paused else _claimed(wish, seen)
            if lease is not None:
                return lease, False
            request = queue.ask(
                key=wish.key, pool=seen.pool, owner=wish.owner, purpose=wish.purpose, tenant=tenant
            )
            return request, seen.request_state != LeaseRequest.State.WAITING
    except IntegrityError:
        # Another process was first with the same key; what we locked is free again.
        lease = _known(wish)
        if lease is None:
            raise
        return lease, False


def _claimed(wish: Wish, seen: Seen) -> Lease | None:
    now = timezone.now()
    lease = claiming.claim(wish, seen, now=now, pool=seen.pool)
    if lease is None and wish.pool == Pool.DEFAULT and seen.pool is not None:
        # Computers from before there were pools.
        lease = claiming.claim(wish, seen, now=now, pool=None)
    return lease


def _known(wish: Wish) -> Lease | None:
    rows = Lease.objects.select_related("sandbox")
    lease = rows.filter(idempotency_key=wish.key).first()
    if lease is not None and lease.owner_id != (wish.owner.pk if wish.owner else None):
        raise KeyTaken(f"the idempotency key {wish.key!r} belongs to another owner's lease")
    return lease


def _check(wish: Wish, seen: Seen, must_exist: bool) -> None:
    owner = wish.owner.pk if wish.owner else None
    if seen.request is not None and seen.request_owner != owner:
        raise KeyTaken(f"the idempotency key {wish.key!r} belongs to another owner's request")
    if seen.pool is None and must_exist:
        known = ", ".join(Pool.objects.order_by("name").values_list("name", flat=True))
        raise PoolRefuses(f"there is no pool {wish.pool!r}; there are: {known or 'none'}")
    if seen.pool_purpose not in (None, Pool.Purpose.ANY, wish.purpose):
        raise PoolRefuses(f"the pool {wish.pool!r} is for {seen.pool_purpose} leases only")


def _whole(ttl: timedelta, purpose: str) -> timedelta:
    return ttl + GRACE if purpose == Lease.Purpose.HUMAN else ttl


def _over(lease: Lease) -> LeaseOver:
    if lease.state == Lease.State.ACTIVE:
        return LeaseOver(
            f"lease {lease.pk} of {lease.sandbox.name} ended at {lease.expires_at}",
            ending=Lease.Ending.IDLE,
        )
    return LeaseOver(
        f"lease {lease.pk} of {lease.sandbox.name} is {lease.state} since {lease.released_at}: "
        f"{lease.release_reason or 'no reason given'}",
        ending=lease.ending,
    )
