"""Keeping each pool as it should be: enough warm computers, not too many, none out of date."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from sandbox.models import Pool, Sandbox
from sandbox.pool.breaker import on_trial, pause_s
from sandbox.pool.demand import warm_target
from sandbox.pool.placement import room
from sandbox.pool.states import COMING, LIVE, retire, worn

PLACED_WITHIN = timedelta(seconds=60)
"""How long a row may wait for a host. It was made because one had room, so somebody died or is stuck."""
_READY = Sandbox.State.READY


def replenish(pool: Pool) -> list[Sandbox]:
    """Look at a pool once: retire what it should not have, and make rows for what it lacks.

    Returns the new rows; [] where somebody else looks at the pool right now.
    """
    with transaction.atomic():
        locked = Pool.objects.select_for_update(skip_locked=True, no_key=True)
        pool_now = locked.filter(pk=pool.pk).first()
        if pool_now is None:
            return []
        _give_up_unplaced(pool_now)
        rows = list(pool_now.sandboxes.filter(state__in=LIVE).order_by("ready_at", "pk"))
        target = warm_target(pool_now)
        kept = _retire(pool_now, rows, target)
        missing = _missing(pool_now, kept, target)
        return [_new(pool_now) for _ in range(missing)]


def _retire(pool: Pool, rows: list[Sandbox], target: int) -> list[Sandbox]:
    """Retire ready computers that are out of date or that nobody has asked for; return the others."""
    kept = []
    warm = sum(row.state in (*COMING, _READY) for row in rows)
    idle_before = timezone.now() - timedelta(seconds=pool.warm_ttl_s)
    for row in rows:
        cause = ""
        if row.state == _READY:
            row.pool = pool
            cause = worn(row)
            if not cause and warm > target and row.ready_at and row.ready_at < idle_before:
                cause = f"not needed: {target} warm are enough"
        if cause and retire(row, cause=cause):
            warm -= 1
        else:
            kept.append(row)
    return kept


def _missing(pool: Pool, rows: list[Sandbox], target: int) -> int:
    if pool.paused or pause_s(pool) > 0:
        return 0
    coming = sum(row.state in COMING for row in rows)
    warm = coming + sum(row.state == _READY for row in rows)
    unplaced = sum(row.host == "" for row in rows)
    missing = min(target - warm, pool.most - len(rows), room(pool) - unplaced)
    if on_trial(pool):
        missing = min(missing, 1 - coming)
    return max(0, missing)


def _new(pool: Pool) -> Sandbox:
    return Sandbox.objects.create(
        name=f"desk-{secrets.token_hex(4)}",
        pool=pool,
        provider=pool.provider,
        image=pool.image,
        width=pool.width,
        height=pool.height,
        network=pool.network,
        egress=pool.egress,
        host="",
        state_deadline=timezone.now() + PLACED_WITHIN,
    )


def _give_up_unplaced(pool: Pool) -> None:
    """End rows that no host has taken: nothing of them exists anywhere."""
    pool.sandboxes.filter(
        host="", state=Sandbox.State.PROVISIONING, state_deadline__lt=timezone.now()
    ).update(
        state=Sandbox.State.GONE,
        state_deadline=None,
        cause=f"no host with {pool.provider} took it within {PLACED_WITHIN.total_seconds():g} s",
    )
    # Retired before any host had it.
    pool.sandboxes.filter(host="", state=Sandbox.State.DESTROYING).update(
        state=Sandbox.State.GONE, state_deadline=None
    )
