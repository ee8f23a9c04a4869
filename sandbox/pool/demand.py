"""How many computers of a pool should be warm: as many as are asked for while one boots.

Nothing is kept: both figures come from the newest rows, so any host may compute them at any time.
"""

from __future__ import annotations

import math

from django.utils import timezone

from sandbox.models import Lease, LeaseRequest, Pool, Sandbox

TAU_S = 60.0
"""A lease counts e times less in the rate for each minute that has passed since."""
_NEWEST_LEASES = 200
_NEWEST_BOOTS = 50
_UNKNOWN_BOOT_S = 5.0


def warm_target(pool: Pool) -> int:
    """Return how many computers should be ready or coming."""
    waiting = LeaseRequest.objects.filter(pool=pool, state=LeaseRequest.State.WAITING).count()
    return target(
        min_warm=pool.min_warm,
        max_warm=min(pool.max_warm, pool.most),
        rate=claim_rate(pool),
        boot_s=boot_p95(pool),
        waiting=waiting,
    )


def target(*, min_warm: int, max_warm: int, rate: float, boot_s: float, waiting: int) -> int:
    """Return ceil(`rate` in claims/s * `boot_s` in s) + `waiting`, within the two bounds."""
    # A long quiet pool has a rate of almost nothing: half a claim per boot asks for none.
    claimed = rate * boot_s
    wanted = (math.ceil(claimed) if claimed >= 0.5 else 0) + waiting
    return min(max_warm, max(min_warm, wanted))


def claim_rate(pool: Pool) -> float:
    """Return the exponentially weighted rate of leases in the pool, in leases per second.

    It reads the newest leases of all pools only: where those reach back less than the weights do,
    the weights of that window count.
    """
    now = timezone.now()
    newest = list(
        Lease.objects.order_by("-pk").values_list("granted_at", "sandbox__pool_id")[:_NEWEST_LEASES]
    )
    ages = [((now - at).total_seconds(), pool_id) for at, pool_id in newest]
    if not ages:
        return 0.0
    window_s = max(ages[-1][0], 0.001) if len(ages) == _NEWEST_LEASES else math.inf
    weights = math.fsum(math.exp(-max(age, 0) / TAU_S) for age, key in ages if key == pool.pk)
    return weights / (TAU_S * -math.expm1(-window_s / TAU_S))


def boot_p95(pool: Pool) -> float:
    """Return how long 95 % of the newest boots took at most, in seconds."""
    boots = (
        Sandbox.objects.filter(pool=pool, born_at__isnull=False, ready_at__isnull=False)
        .order_by("-pk")
        .values_list("born_at", "ready_at")[:_NEWEST_BOOTS]
    )
    took = sorted((ready - born).total_seconds() for born, ready in boots if ready >= born)
    return took[math.ceil(len(took) * 0.95) - 1] if took else _UNKNOWN_BOOT_S
