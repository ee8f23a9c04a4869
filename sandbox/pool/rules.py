"""The default pool, which the settings describe."""

from __future__ import annotations

from django.db import transaction

from sandbox.models import Host, Pool, Sandbox

MEMORY_MB = 1536
"""Of a computer of the default pool, when it is made."""


def configure(*, provider: str, warm: int, most: int) -> Pool:
    """Make the default pool what the settings say: `warm` and `most` are per host that has `provider`.

    Computers that belong to no pool are its own.
    """
    hosts = Host.objects.exclude(state=Host.State.DOWN).filter(providers__contains=[provider])
    count = max(1, hosts.count())
    said = {
        "provider": provider, "min_warm": warm * count, "max_warm": most * count,
        "most": most * count,
    }  # fmt: skip
    with transaction.atomic():
        pool, _ = Pool.objects.update_or_create(
            name=Pool.DEFAULT, defaults=said, create_defaults={**said, "memory_mb": MEMORY_MB}
        )
        lost = Sandbox.objects.filter(pool=None).exclude(state=Sandbox.State.GONE)
        lost.update(pool=pool)
    return pool
