"""A person stops a pool from starting computers, or lets it go on."""

from __future__ import annotations

from django.db import transaction

from sandbox.leasing import audit
from sandbox.models import Pool


def pause(pool: Pool, *, by: str) -> bool:
    """Start no more computers of the pool; those that run stay. False if it was paused already."""
    return _turn(pool, "pool.paused", by, paused=True)


def resume(pool: Pool, *, by: str) -> bool:
    """Let the pool start computers again, now, also after failed starts; False if it did already."""
    return _turn(
        pool, "pool.resumed", by, paused=False, failures=0, degraded_at=None, degraded_cause=""
    )


def _turn(pool: Pool, kind: str, by: str, **fields: object) -> bool:
    with transaction.atomic():
        row = Pool.objects.select_for_update().get(pk=pool.pk)
        if all(getattr(row, name) == value for name, value in fields.items()):
            return False
        for name, value in fields.items():
            setattr(row, name, value)
        row.save(update_fields=list(fields))
        audit.record(kind, by=by, pool=row.name)
    return True
