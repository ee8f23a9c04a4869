"""A pool whose computers do not start is left alone for a while, and says so."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from sandbox.leasing import audit
from sandbox.models import Pool

BREAK_AFTER = 3
PAUSE_S = (5.0, 60.0)


def start_failed(pool: Pool, *, host: str, cause: str) -> None:
    """Count a failed start; with the third in a row the pool is degraded, and an alarm is written."""
    with transaction.atomic():
        Pool.objects.filter(pk=pool.pk).update(failures=F("failures") + 1)
        failures = Pool.objects.get(pk=pool.pk).failures
        if failures < BREAK_AFTER:
            return
        Pool.objects.filter(pk=pool.pk).update(degraded_at=timezone.now(), degraded_cause=cause)
        if failures == BREAK_AFTER:
            audit.record(
                "pool.degraded", by=f"host:{host}", host=host,
                pool=pool.name, failures=failures, cause=cause,
            )  # fmt: skip


def start_succeeded(pool: Pool, *, host: str) -> None:
    """Forget the failures; a pool that was degraded is well again."""
    if pool.failures == 0:
        return
    with transaction.atomic():
        changed = Pool.objects.filter(pk=pool.pk, failures__gt=0).update(
            failures=0, degraded_at=None, degraded_cause=""
        )
        if changed and pool.failures >= BREAK_AFTER:
            audit.record(
                "pool.recovered", by=f"host:{host}", host=host,
                pool=pool.name, failures=pool.failures,
            )  # fmt: skip


def pause_s(pool: Pool) -> float:
    """Return for how many seconds from now nothing of the pool should be started; 0 if it may.

    The pause doubles with every further failure, from 5 s to a minute, counted from the last one.
    """
    if pool.failures < BREAK_AFTER or pool.degraded_at is None:
        return 0.0
    shortest, longest = PAUSE_S
    pause = min(longest, shortest * 2 ** min(pool.failures - BREAK_AFTER, 16))
    return max(0.0, pause - (timezone.now() - pool.degraded_at).total_seconds())


def on_trial(pool: Pool) -> bool:
    """Whether a degraded pool may try one start: its pause is over and none has come up yet."""
    return pool.failures >= BREAK_AFTER
