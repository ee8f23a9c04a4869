"""The states of one computer. Every verb is a compare-and-swap: a late or doubled call changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from sandbox import providers
from sandbox.capabilities import OwnScreen
from sandbox.leasing import audit, leases
from sandbox.models import Lease, Pool, Sandbox
from sandbox.provider import Handle, Provider

START_WITHIN = timedelta(minutes=5)
"""A backstop: every provider gives up by itself before, and says why."""
STOP_WITHIN = timedelta(seconds=60)

COMING = (Sandbox.State.PROVISIONING, Sandbox.State.RESETTING)
LIVE = (*COMING, Sandbox.State.READY, Sandbox.State.LEASED)
ENDING = (Sandbox.State.FAILED, Sandbox.State.DESTROYING)
_NOT_ENDED = "; not ended: "


def provider(name: str) -> Provider:
    """Return this host's provider `name`; its computers live in a folder of its own."""
    return providers.load(name, state=settings.STATE_DIR / "sandboxes" / name)


def of_host(host: str) -> QuerySet[Sandbox]:
    """Return the computers of a host that are not gone, with their pools."""
    rows = Sandbox.objects.filter(host=host).exclude(state=Sandbox.State.GONE)
    return rows.select_related("pool")


def begin(sandbox: Sandbox) -> bool:
    """Note that a boot of the computer begins now; False if nobody waits for it any more."""
    now = timezone.now()
    changed = _same(sandbox).filter(state__in=COMING)
    return bool(changed.update(born_at=now, state_deadline=now + START_WITHIN))


def mark_ready(sandbox: Sandbox, handle: Handle) -> bool:
    """Say that a fresh start of `sandbox` answers; False if nobody waits for it any more.

    Its width and height are kept: a phone shows what it has, whatever its pool asks for.
    A reset is only believed with a new boot_id.
    """
    old = str(sandbox.handle.get("boot_id", ""))
    if sandbox.state == Sandbox.State.RESETTING and old == handle.boot_id:
        mark_failed(sandbox, cause="the reset gave the same boot_id: nothing was started again")
        return False
    now = timezone.now()
    changed = (
        _same(sandbox)
        .filter(state__in=COMING)
        .update(
            state=Sandbox.State.READY,
            state_deadline=None,
            cause="",
            canary=False,
            handle=Sandbox.handle_record(handle),
            width=sandbox.width,
            height=sandbox.height,
            ready_at=now,
            probed_at=now,
            reuse_count=F("reuse_count") + (1 if old else 0),
        )
    )
    return bool(changed)


def mark_canary(lease: Lease) -> None:
    """Note that the platform's own trial holds the lease's computer, until it is ready again."""
    Sandbox.objects.filter(pk=lease.sandbox_id, epoch=lease.epoch).update(canary=True)


def probed(keys: Collection[int]) -> None:
    """Note that these computers (primary keys) have just answered: one statement for a host's all."""
    if keys:
        Sandbox.objects.filter(pk__in=keys).update(probed_at=timezone.now())


def mark_failed(sandbox: Sandbox, *, cause: str) -> bool:
    """Give a computer up and keep `cause`; an active lease of it is lost with the same words."""
    lease = sandbox.leases.filter(state=Lease.State.ACTIVE, epoch=sandbox.epoch).first()
    if lease is not None and sandbox.state == Sandbox.State.LEASED:
        return bool(leases.lose(lease, cause=cause).state == Lease.State.LOST)
    changed = (
        _same(sandbox)
        .filter(state__in=LIVE)
        .update(
            state=Sandbox.State.FAILED,
            state_deadline=timezone.now() + STOP_WITHIN,
            cause=cause,
            epoch=F("epoch") + 1,
        )
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


def retire(sandbox: Sandbox, *, cause: str = "") -> bool:
    """Take a computer that nobody holds out of the pool, and keep why; its host ends it."""
    changed = Sandbox.objects.filter(
        pk=sandbox.pk, state__in=(*COMING, Sandbox.State.READY)
    ).update(
        state=Sandbox.State.DESTROYING,
        state_deadline=timezone.now() + STOP_WITHIN,
        cause=cause,
        epoch=F("epoch") + 1,
    )
    return bool(changed)


def drain(host: str) -> int:
    """Retire every computer of a host that nobody holds; return how many are left on it, leased ones."""
    for sandbox in of_host(host).filter(state__in=(*COMING, Sandbox.State.READY)):
        retire(sandbox, cause=f"host {host} is draining")
    return of_host(host).count()


def worn(sandbox: Sandbox) -> str:
    """Return why a computer should not be used again, "" if it may be.

    A ready one may be too old, or not what its pool is now; one that is to be reset may have been
    used too often, too.
    """
    if sandbox.pool is None:
        return ""
    if changed := _changed(sandbox, sandbox.pool):
        return changed
    resetting = sandbox.state == Sandbox.State.RESETTING
    if resetting and sandbox.reuse_count >= sandbox.pool.max_reuses:
        return f"worn: used again {sandbox.reuse_count} times"
    age = timezone.now() - sandbox.created_at
    if age > timedelta(seconds=sandbox.pool.max_age_s):
        return f"worn: {age.total_seconds() / 3600:.1f} hours old"
    return ""


def _changed(sandbox: Sandbox, now: Pool) -> str:
    names = ["provider", "image", "network", "egress"]
    if not isinstance(provider(now.provider), OwnScreen):
        names += ["width", "height"]
    for name in names:
        if getattr(sandbox, name) != (value := getattr(now, name)):
            return f"the pool's {name} is {value or 'nothing'} now"
    return ""


def not_ended(sandbox: Sandbox, *, why: str) -> bool:
    """Keep why a computer could not be ended, and give its host STOP_WITHIN more."""
    cause = sandbox.cause.partition(_NOT_ENDED)[0] + _NOT_ENDED + why
    changed = Sandbox.objects.filter(pk=sandbox.pk, state__in=ENDING).update(
        state=Sandbox.State.FAILED, state_deadline=timezone.now() + STOP_WITHIN, cause=cause
    )
    return bool(changed)


def note_limits(sandbox: Sandbox, *, ran_into: Sequence[str]) -> None:
    """Keep which limits a computer ran into: on the trail, and in its cause where it is ending."""
    words = "; ".join(ran_into)
    with transaction.atomic():
        row = Sandbox.objects.select_for_update(no_key=True).get(pk=sandbox.pk)
        if row.state in ENDING:
            if words in row.cause:
                return
            row.cause = f"{row.cause}; {words}" if row.cause else words
            row.save(update_fields=["cause"])
        audit.record(
            "sandbox.limited", by=f"host:{row.host}", host=row.host, sandbox=row.name,
            ran_into=words,
        )  # fmt: skip


def mark_gone(sandbox: Sandbox) -> bool:
    """Say that nothing is left of a computer; its row stays, with the cause if it has one."""
    changed = Sandbox.objects.filter(pk=sandbox.pk, state__in=ENDING).update(
        state=Sandbox.State.GONE, state_deadline=None
    )
    return bool(changed)


def overdue(host: str) -> list[Sandbox]:
    """Return the computers of a host that have been coming or ending for too long."""
    late = of_host(host).filter(state__in=(*COMING, *ENDING), state_deadline__lt=timezone.now())
    return list(late)


def _same(sandbox: Sandbox) -> QuerySet[Sandbox]:
    """Return the row only if it is as the caller has seen it."""
    return Sandbox.objects.filter(pk=sandbox.pk, state=sandbox.state, epoch=sandbox.epoch)
