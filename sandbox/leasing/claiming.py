"""The statements that change a computer's owner, each whole: one round trip, all or nothing.

A claim must cost the same with 100 computers as with 10,000 and be quick enough for hundreds a
second; that is why these are SQL and everything around them is not. When a lease began and ended
is read from the database's clock while its computer is locked, so that no two of one computer can
seem to overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from django.contrib.auth.models import User
from django.db import connection

from sandbox.leasing import audit
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

# A newcomer may take one only if nobody waits; a waiting caller only if there is one for each of
# those ahead too. Locking its request makes sure that it still waits.
_ALLOWED = {
    False: """
        SELECT 1 WHERE NOT EXISTS (
            SELECT FROM sandbox_leaserequest a
            WHERE a.pool_id {queue} AND a.state = 'waiting'
                AND a.last_asked_at > %(asking)s)
    """,
    True: """
        SELECT r.id FROM sandbox_leaserequest r
        WHERE r.id = %(request)s AND r.pool_id {queue} AND r.state = 'waiting' AND EXISTS (
            SELECT FROM sandbox_sandbox s WHERE {claimable}
            ORDER BY s.ready_at, s.id  -- without it the planner reads the whole table
            LIMIT 1 OFFSET (
                SELECT count(*) FROM sandbox_leaserequest a
                WHERE a.pool_id {queue} AND a.state = 'waiting'
                    AND a.last_asked_at > %(asking)s
                    AND (a.priority, a.turn, a.id) < (r.priority, r.turn, r.id)))
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
    RETURNING *
), granted AS (
    UPDATE sandbox_leaserequest r SET state = 'granted', reason = '', lease_id = made.id
    FROM made WHERE r.id = %(request)s
), written AS (
    INSERT INTO sandbox_auditevent (kind, actor, host, sandbox, lease, epoch, detail)
    SELECT 'lease.granted', %(actor)s, taken.host, taken.name, made.id, made.epoch, '{{}}'
    FROM taken, made
)
SELECT * FROM made
"""

_END = """
WITH asked AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(endings)s::text[], %(reasons)s::text[])
        AS a (id, ending, reason)
), ended AS (
    UPDATE sandbox_lease l
    SET state = %(state)s, ending = asked.ending, release_reason = asked.reason,
        released_at = clock_timestamp(), human_control = false
    FROM asked
    WHERE l.id = asked.id AND l.state = 'active'
        AND (%(late)s::timestamptz IS NULL OR l.expires_at <= %(late)s)
        AND (%(hands)s OR NOT l.human_control)
    RETURNING l.id, l.sandbox_id, l.epoch, l.ending, l.release_reason
), freed AS (
    UPDATE sandbox_sandbox s
    SET epoch = s.epoch + 1, state = %(sandbox_state)s, state_deadline = %(deadline)s,
        cause = CASE WHEN %(sandbox_state)s = 'failed' THEN ended.release_reason ELSE '' END
    FROM ended WHERE s.id = ended.sandbox_id AND s.epoch = ended.epoch
), revoked AS (
    DELETE FROM sandbox_streamticket t USING ended WHERE t.lease_id = ended.id AND t.used_at IS NULL
), written AS (
    INSERT INTO sandbox_auditevent (kind, actor, host, sandbox, lease, epoch, detail)
    SELECT 'lease.' || %(state)s, %(actor)s, s.host, s.name, ended.id, ended.epoch,
        jsonb_build_object('ending', ended.ending, 'reason', ended.release_reason)
    FROM ended JOIN sandbox_sandbox s ON s.id = ended.sandbox_id
)
SELECT ended.id, EXISTS (
    SELECT FROM sandbox_streamticket t WHERE t.lease_id = ended.id AND t.used_at IS NOT NULL)
FROM ended
"""


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
    with connection.cursor() as cursor:
        cursor.execute(
            _LOOK, {"key": wish.key, "pool": wish.pool, "owner": owner, "space": _OWNERS}
        )
        return Seen(*cursor.fetchone()[:-1])


def claim(wish: Wish, seen: Seen, *, now: datetime, pool: int | None) -> Lease | None:
    """Lease the longest ready computer of `pool` and write it down; None if it is nobody's turn.

    Preferred are those that have answered within FRESH. Raises IntegrityError for a taken key.
    """
    for lease in Lease.objects.raw(*statement(wish, seen, now=now, pool=pool)):
        lease.owner = wish.owner  # known already: nobody need read it again
        return cast(Lease, lease)
    return None


def statement(
    wish: Wish, seen: Seen, *, now: datetime, pool: int | None
) -> tuple[str, dict[str, object]]:
    """Return the claim's SQL and what it is filled with."""
    waiting = seen.request if seen.request_state == LeaseRequest.State.WAITING else None
    claimable = _CLAIMABLE.format(pool="IS NULL" if pool is None else "= %(pool)s")
    in_queue = "IS NULL" if seen.pool is None else "= %(queue)s"
    allowed = _ALLOWED[waiting is not None].format(claimable=claimable, queue=in_queue)
    values = {
        "pool": pool,
        "queue": seen.pool,
        "request": waiting,
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
    return _CLAIM.format(allowed=allowed, claimable=claimable, near=NEAR), values


@dataclass(frozen=True, slots=True)
class End:
    """Which lease ends, and why."""

    lease: int
    ending: str
    reason: str


def end(
    ends: Sequence[End],
    *,
    state: str,
    sandbox_state: str,
    within: timedelta,
    by: str,
    now: datetime,
    only_late: bool = False,
    hands: bool = True,
) -> dict[int, bool]:
    """End the leases that are active (with `only_late`: and expired); return which were.

    The value says whether a screen of the lease has been opened. Without `hands` those whose
    owner's hand has control are left alone. The epoch rises first: a late caller is refused while
    the computer is being reset, which its host has `within` for.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _END,
            {
                "ids": [one.lease for one in ends],
                "endings": [str(one.ending) for one in ends],
                "reasons": [one.reason[:200] for one in ends],
                "state": str(state),
                "sandbox_state": str(sandbox_state),
                "deadline": now + within,
                "late": now if only_late else None,
                "hands": hands,
                "actor": by,
            },
        )
        return dict(cursor.fetchall())
