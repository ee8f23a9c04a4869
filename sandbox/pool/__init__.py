"""Pools and the computers in them: the only code that changes a Sandbox, but for what a lease does to it.

States: provisioning → ready → leased → resetting → ready; failed and destroying → gone. Each has a
deadline, and what ends in failed or gone keeps its cause.
"""

from sandbox.pool.breaker import pause_s, start_failed, start_succeeded
from sandbox.pool.demand import boot_p95, claim_rate, warm_target
from sandbox.pool.pausing import pause, resume
from sandbox.pool.placement import room, take
from sandbox.pool.replenisher import replenish
from sandbox.pool.rules import configure
from sandbox.pool.states import (
    COMING,
    ENDING,
    LIVE,
    begin,
    drain,
    mark_canary,
    mark_failed,
    mark_gone,
    mark_ready,
    not_ended,
    note_limits,
    of_host,
    overdue,
    probed,
    provider,
    request_reset,
    retire,
    worn,
)

__all__ = [
    "COMING",
    "ENDING",
    "LIVE",
    "begin",
    "boot_p95",
    "claim_rate",
    "configure",
    "drain",
    "mark_canary",
    "mark_failed",
    "mark_gone",
    "mark_ready",
    "not_ended",
    "note_limits",
    "of_host",
    "overdue",
    "pause",
    "pause_s",
    "probed",
    "provider",
    "replenish",
    "request_reset",
    "resume",
    "retire",
    "room",
    "start_failed",
    "start_succeeded",
    "take",
    "warm_target",
    "worn",
]
