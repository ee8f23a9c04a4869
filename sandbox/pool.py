"""The computers of a host: the only code that changes a Sandbox, but for what a lease does to it.

States: provisioning → ready → leased → resetting → ready; failed and destroying → gone. Every verb
is a compare-and-swap on the state: a late or doubled call changes nothing and returns False.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils import timezone

from sandbox import leases, providers
from sandbox.models import Lease, Sandbox
from sandbox.provider import Handle, Provider

START_WITHIN = timedelta(seconds=60)
STOP_WITHIN = timedelta(seconds=60)

_COMING = (Sandbox.State.PROVISIONING, Sandbox.State.RESETTING)
_LIVE = (*_COMING, Sandbox.State.READY, Sandbox.State.LEASED)


def provider(name: str) -> Provider:
    """Return this host's provider `name`; its computers live in a folder of its own."""
    return providers.load(name, state=settings.STATE_DIR / "sandboxes" / name)


def of_host(host: str) -> QuerySet[Sandbox]:
    """Return the computers of a host that are not gone."""
    return Sandbox.objects.filter(host=host).exclude(state=Sandbox.State.GONE)


def replenish(*, host: str, provider: str, warm: int, most: int) -> list[Sandbox]:
    """Add computers until `warm` are ready or coming, at most `most` in all; return the new ones."""
    rows = of_host(host)
    live = rows.filter(state__in=_LIVE).count()
    waiting = rows.filter(state__in=(*_COMING, Sandbox.State.READY)).count()
    missing = min(warm - waiting, most - live)
    return [
        Sandbox.objects.create(
            name=f"desk-{secrets.token_hex(4)}",
            provider=provider,
            host=host,
            state_deadline=timezone.now() + START_WITHIN,
        )
        for _ in range(missing)
    ]


def mark_ready(sandbox: Sandbox, handle: Handle) -> bool:
    """Say that a fresh start of `sandbox` answers; False if nobody waits for it any more.

    A reset is only believed with a new boot_id.
    """
    old = str(sandbox.handle.get("boot_id", ""))
    if sandbox.state == Sandbox.State.RESETTING and old == handle.boot_id:
        mark_failed(sandbox, cause="the reset gave the same boot_id: nothing was started again")
        return False
    now = timezone.now()
    changed = Sandbox.objects.filter(pk=sandbox.pk, state=sandbox.state, state__in=_COMING).update(
        state=Sandbox.State.READY,
        state_deadline=None,
        cause="",
        handle=Sandbox.handle_record(handle),
        ready_at=now,
        probed_at=now,
        reuse_count=F("reuse_count") + (1 if old else 0),
    )
    return bool(changed)


def probed(sandbox: Sandbox) -> None:
    """Note that the computer has just answered."""
    Sandbox.objects.filter(pk=sandbox.pk).update(probed_at=timezone.now())


def mark_failed(sandbox: Sandbox, *, cause: str) -> bool:
    """Give a computer up and keep `cause`; an active lease of it is lost with the same words."""
    lease = sandbox.leases.filter(state=Lease.State.ACTIVE).first()
    if lease is not None and sandbox.state == Sandbox.State.LEASED:
        return bool(leases.lose(lease, cause=cause).state == Lease.State.LOST)
    changed = Sandbox.objects.filter(pk=sandbox.pk, state=sandbox.state, state__in=_LIVE).update(
        state=Sandbox.State.FAILED,
        state_deadline=timezone.now() + STOP_WITHIN,
        cause=cause,
        epoch=F("epoch") + 1,
    )
    return bool(changed)


def request_reset(sandbox: Sandbox, *, cause: str) -> bool:
    """Ask the host for a fresh start of a computer that is ready; a leased one is released instead."""
    changed = Sandbox.objects.filter(pk=sandbox.pk, state=Sandbox.State.READY).update(
        state=Sandbox.State.RESETTING,
        state_deadline=timezone.now() + START_WITHIN,
        cause=cause,
        epoch=F("epoch") + 1,
    )
    return bool(changed)


def retire(sandbox: Sandbox) -> bool:
    """Take a computer that nobody holds out of the pool; its host ends it."""
    changed = Sandbox.objects.filter(
        pk=sandbox.pk, state__in=(*_COMING, Sandbox.State.READY)
    ).update(
        state=Sandbox.State.DESTROYING,
        state_deadline=timezone.now() + STOP_WITHIN,
        epoch=F("epoch") + 1,
    )
    return bool(changed)


def mark_gone(sandbox: Sandbox) -> bool:
    """Say that nothing is left of a computer; its row stays, with the cause if it failed."""
    changed = Sandbox.objects.filter(
        pk=sandbox.pk, state__in=(Sandbox.State.FAILED, Sandbox.State.DESTROYING)
    ).update(state=Sandbox.State.GONE, state_deadline=None)
    return bool(changed)


def overdue(host: str) -> list[Sandbox]:
    """Return the computers that have been starting or resetting for too long."""
    rows = of_host(host).filter(state__in=_COMING, state_deadline__lt=timezone.now())
    return list(rows)
