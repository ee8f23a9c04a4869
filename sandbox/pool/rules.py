"""The pools that a host makes: the default one, and one for each other kind that it has."""

from __future__ import annotations

from django.db import transaction

from sandbox.models import Host, Pool, Sandbox

MEMORY_MB = 1536
"""Of a computer of such a pool, when the pool is made."""


def configure(*, provider: str, warm: int, most: int, name: str = Pool.DEFAULT) -> Pool:
    """Make the pool `name` what the settings say: `warm` and `most` are per host that has `provider`.

    Computers that belong to no pool are the default one's.
    """
    hosts = Host.objects.exclude(state=Host.State.DOWN).filter(providers__contains=[provider])
    count = max(1, hosts.count())
    said = {
        "provider": provider, "min_warm": warm * count, "max_warm": most * count,
        "most": most * count,
    }  # fmt: skip
    with transaction.atomic():
        pool, _ = Pool.objects.update_or_create(
            name=name, defaults=said, create_defaults={**said, "memory_mb": MEMORY_MB}
        )
        if name == Pool.DEFAULT:
            lost = Sandbox.objects.filter(pool=None).exclude(state=Sandbox.State.GONE)
            lost.update(pool=pool)
    return pool
