"""The platform's own trial: lease a computer of each pool as anybody would, use it, give it back.

What it finds is an AuditEvent, `canary.well` or `canary.failed` with the cause and the stage.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

from sandbox import pool as pools
from sandbox.leasing import audit, leases
from sandbox.models import Lease, Pool
from sandbox.proof import check_picture
from sandbox.provider import ActionFailed, Desktop, ProvisionFailed, SandboxError

BY = "canary"
TTL = timedelta(seconds=60)
WAIT_S = 20.0
_WORD = "tandem-canary"


def run_all() -> list[str]:
    """Try every pool that is not paused; return the names of those that failed."""
    return [
        pool.name for pool in Pool.objects.filter(paused=False).order_by("name") if not run(pool)
    ]


def run(pool: Pool) -> bool:
    """Try one pool and write down what was found."""
    began, stage = time.monotonic(), ["lease"]
    cause = ""
    try:
        _try(pool, stage)
    except SandboxError as error:
        cause = f"{type(error).__name__}: {error}"
    if not cause and (left := held(pool)):
        stage, cause = ["leak"], f"{left} canary leases are still held"
    audit.record(
        "canary.failed" if cause else "canary.well",
        by=BY,
        pool=pool.name,
        stage=stage[-1],
        cause=cause,
        seconds=round(time.monotonic() - began, 3),
    )
    return not cause


def held(pool: Pool) -> int:
    """Return how many computers of the pool the canary holds."""
    return Lease.objects.filter(
        state=Lease.State.ACTIVE, sandbox__pool=pool, idempotency_key__startswith=f"{BY}-"
    ).count()


def _try(pool: Pool, stage: list[str]) -> None:
    purpose = Lease.Purpose.AGENT if pool.purpose == Pool.Purpose.ANY else pool.purpose
    lease = leases.acquire(
        owner=None,
        purpose=purpose,
        idempotency_key=f"{BY}-{uuid.uuid4().hex}",
        pool=pool,
        tenant=BY,
        ttl=TTL,
        hard_ttl=TTL,
        wait_s=WAIT_S,
    )
    pools.mark_canary(lease)
    try:
        stage.append("connect")
        desktop = leases.connect(lease)
        try:
            _use(desktop, pool, lease, stage)
        finally:
            desktop.close()
    except SandboxError as error:
        leases.release(lease, reason=f"canary: {error}")
        raise
    stage.append("release")
    leases.release(lease, reason="canary: all is well")


def _use(desktop: Desktop, pool: Pool, lease: Lease, stage: list[str]) -> None:
    stage.append("screen")
    sandbox = lease.sandbox
    check_picture(desktop.observe(), width=sandbox.width, height=sandbox.height)
    stage.append("shell")
    try:
        result = desktop.shell(
            f"echo {_WORD}", epoch=lease.epoch, action_id=f"{BY}-{lease.pk}", timeout_ms=10_000
        )
    except ActionFailed:  # a computer without a shell says so
        return
    if result.output.strip() != _WORD:
        raise ProvisionFailed(f"its shell printed {result.output[:80]!r}, not {_WORD!r}")
