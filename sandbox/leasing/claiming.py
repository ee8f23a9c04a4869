"""The statement that gives a computer an owner, whole: one round trip, all or nothing.

A claim must cost the same with 100 computers as with 10,000 and be quick enough for hundreds a
second; that is why this is SQL and everything around it is not. When a lease began is read from the
database's clock while its computer is locked, so that no two of one computer can seem to overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS

from sandbox.leasing import audit, prepared
from sandbox.models import Lease, LeaseRequest

FRESH = timedelta(seconds=2)
NEAR = 32
"""So many of the longest ready are looked at for one that has answered within FRESH."""

ASKING = timedelta(seconds=15)
"""A waiting caller who has not asked for so long holds nobody up."""

_OWNERS = 0x71756F74  # "quot": class of the advisory locks of people with a quota

_LOOK = """
SELECT l.id, r.id, r.state, r.owner_id, p.id, p.purpose, p.paused, q.most,
    CASE WHEN q.most IS NOT NULL THEN pg_advisory_xact_lock(%(space)s, %(owner)s) END
FROM (VALUES (1)) one
LEFT JOIN sandbox_lease l ON l.idempotency_key = %(key)s
LEFT JOIN sandbox_leaserequest r ON r.idempotency_key = %(key)s
LEFT JOIN sandbox_pool p ON p.name = %(pool)s
LEFT JOIN (
    SELECT most FROM sandbox_quota
    WHERE %(owner)s::integer IS NOT NULL AND (user_id = %(owner)s OR user_id IS NULL)
    ORDER BY user_id NULLS LAST LIMIT 1) q ON true
"""

_CLAIMABLE = """
    s.state = 'ready' AND s.pool_id {pool} AND NOT EXISTS (
        SELECT FROM sandbox_host h WHERE h.name = s.host AND h.state <> 'up')
"""

_AHEAD = "a.pool_id {queue} AND a.state = 'waiting' AND a.last_asked_at > %(asking)s"

# A newcomer may take one only if nobody waits; a waiting caller only if there is one for each of
# those ahead too. Locking its request makes sure that it still waits. At once goes who has no quota,
# waits nowhere and holds nothing by this key: for most that is all that has to be asked.
_AT_ONCE, _NEWCOMER, _WAITING = "at once", "newcomer", "waiting"
_ALLOWED = {
    _AT_ONCE: """
        SELECT p.id FROM sandbox_pool p
        WHERE p.name = %(name)s AND p.purpose IN ('any', %(purpose)s) AND NOT p.paused
            AND NOT EXISTS (SELECT FROM sandbox_lease l WHERE l.idempotency_key = %(key)s)
            AND NOT EXISTS (SELECT FROM sandbox_leaserequest r WHERE r.idempotency_key = %(key)s)
            AND NOT EXISTS (SELECT FROM sandbox_leaserequest a WHERE {ahead})
            AND NOT EXISTS (
                SELECT FROM sandbox_quota
                WHERE %(owner)s::integer IS NOT NULL AND (user_id = %(owner)s OR user_id IS NULL))
    """,
    _NEWCOMER: """
        SELECT 1 WHERE NOT EXISTS (SELECT FROM sandbox_leaserequest a WHERE {ahead})
    """,
    _WAITING: """
        SELECT r.id FROM sandbox_leaserequest r
        WHERE r.id = %(request)s AND r.pool_id {queue} AND r.state = 'waiting' AND EXISTS (
            SELECT FROM sandbox_sandbox s WHERE {claimable}
            ORDER BY s.ready_at, s.id  -- without it the planner reads the whole table
            LIMIT 1 OFFSET (
                SELECT count(*) FROM sandbox_leaserequest a
                WHERE {ahead} AND (a.priority, a.turn, a.id) < (r.priority, r.turn, r.id)))
        FOR UPDATE OF r
    """,
}

# Two steps, so that the first few locked by others at this moment do not mean that none is ready.
_CLAIM = """
WITH allowed AS ({allowed}),
near AS (
    SELECT s.id FROM sandbox_sandbox s WHERE {claimable} ORDER BY s.ready_at, s.id LIMIT {near}
), first AS (
    SELECT s.id FROM sandbox_sandbox s
    WHERE s.id = ANY (ARRAY(SELECT id FROM near)) AND s.state = 'ready' AND EXISTS (SELECT FROM allowed)
    ORDER BY s.probed_at < %(fresh)s, s.ready_at, s.id
    LIMIT 1 FOR UPDATE OF s SKIP LOCKED
), further AS (
    SELECT s.id FROM sandbox_sandbox s
    WHERE {claimable} AND EXISTS (SELECT FROM allowed) AND NOT EXISTS (SELECT FROM first)
    ORDER BY s.ready_at, s.id LIMIT 1 FOR UPDATE OF s SKIP LOCKED
), taken AS (
    UPDATE sandbox_sandbox SET state = 'leased', epoch = epoch + 1, state_deadline = NULL
    WHERE id IN (SELECT id FROM first UNION ALL SELECT id FROM further)
    RETURNING id, epoch, name, host
), made AS (
    INSERT INTO sandbox_lease (
        sandbox_id, epoch, owner_id, purpose, idempotency_key, state, human_control, granted_at,
        expires_at, hard_expires_at, last_activity_at, release_reason, ending)
    SELECT id, epoch, %(owner)s, %(purpose)s, %(key)s, 'active', false, clock_timestamp(),
        %(expires)s, %(hard)s, %(now)s, '', ''
    FROM taken
    RETURNING {columns}
), {granted} written AS (
    INSERT INTO sandbox_auditevent (kind, actor, host, sandbox, lease, epoch, detail)
    SELECT 'lease.granted', %(actor)s, taken.host, taken.name, made.id, made.epoch, '{{}}'
    FROM taken, made
)
SELECT * FROM made
"""

_GRANTED = """granted AS (
    UPDATE sandbox_leaserequest r SET state = 'granted', reason = '', lease_id = made.id
    FROM made WHERE r.id = %(request)s
),"""

_FIELDS = [field.attname for field in Lease._meta.concrete_fields]
_COLUMNS = ", ".join(str(field.column) for field in Lease._meta.concrete_fields)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller asks for; `key` makes asking twice the same as asking once."""

    owner: User | None
    purpose: str
    key: str
    pool: str
    ttl: timedelta
    hard_ttl: timedelta


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is for a wish already: ids of rows, None where there is no such row."""

    lease: int | None
    request: int | None
    request_state: str | None
    request_owner: int | None
    pool: int | None
    pool_purpose: str | None
    pool_paused: bool | None
    quota: int | None


def look(wish: Wish) -> Seen:
    """Return what concerns `wish`; an owner with a quota is locked until the transaction ends.

    Counting comes after it, by a statement of its own: one that began before it had the lock would
    not see what others took meanwhile.
    """
    owner = wish.owner.pk if wish.owner else None
    values = {"key": wish.key, "pool": wish.pool, "owner": owner, "space": _OWNERS}
    return Seen(*prepared.run(_LOOK, values)[0][:-1])


def claim_at_once(wish: Wish, *, now: datetime) -> Lease | None:
    """Lease the longest ready computer of the wish's pool if nothing speaks against it.

    None where there is more to look at than one statement may decide. Raises IntegrityError for a
    key that was taken at this moment.
    """
    return _lease(wish, prepared.run(*statement_at_once(wish, now=now)))


def claim(wish: Wish, seen: Seen, *, now: datetime, pool: int | None) -> Lease | None:
    """Lease the longest ready computer of `pool` and write it down; None if it is nobody's turn.

    Preferred are those that have answered within FRESH. Raises IntegrityError for a taken key.
    """
    return _lease(wish, prepared.run(*statement(wish, seen, now=now, pool=pool)))


def statement_at_once(wish: Wish, *, now: datetime) -> tuple[str, dict[str, object]]:
    """Return the SQL of a claim at once and what it is filled with."""
    values = _values(wish, now=now) | {"name": wish.pool}
    return _statement(_AT_ONCE, in_pool=True, in_queue=True), values


def statement(
    wish: Wish, seen: Seen, *, now: datetime, pool: int | None
) -> tuple[str, dict[str, object]]:
    """Return the claim's SQL and what it is filled with."""
    values = _values(wish, now=now)
    if pool is not None:
        values["pool"] = pool
    if seen.pool is not None:
        values["queue"] = seen.pool
    kind = _NEWCOMER
    if seen.request_state == LeaseRequest.State.WAITING:
        kind, values["request"] = _WAITING, seen.request
    return _statement(kind, in_pool=pool is not None, in_queue=seen.pool is not None), values


@cache
def _statement(kind: str, *, in_pool: bool, in_queue: bool) -> str:
    pool = "= (SELECT id FROM allowed)" if kind == _AT_ONCE else "= %(pool)s"
    queue = "= p.id" if kind == _AT_ONCE else "= %(queue)s"
    claimable = _CLAIMABLE.format(pool=pool if in_pool else "IS NULL")
    queue = queue if in_queue else "IS NULL"
    ahead = _AHEAD.format(queue=queue)
    return _CLAIM.format(
        allowed=_ALLOWED[kind].format(claimable=claimable, queue=queue, ahead=ahead),
        claimable=claimable,
        near=NEAR,
        granted=_GRANTED if kind == _WAITING else "",
        columns=_COLUMNS,
    )


def _values(wish: Wish, *, now: datetime) -> dict[str, object]:
    return {
        "owner": wish.owner.pk if wish.owner else None,
        "actor": audit.actor(wish.owner),
        "purpose": str(wish.purpose),
        "key": wish.key,
        "now": now,
        "asking": now - ASKING,
        "fresh": now - FRESH,
        "expires": now + min(wish.ttl, wish.hard_ttl),
        "hard": now + wish.hard_ttl,
    }


def _lease(wish: Wish, rows: list[tuple[object, ...]]) -> Lease | None:
    if not rows:
        return None
    lease = Lease.from_db(DEFAULT_DB_ALIAS, _FIELDS, rows[0])
    lease.owner = wish.owner  # known already: nobody need read it again
    return lease
