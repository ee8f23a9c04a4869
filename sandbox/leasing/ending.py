"""The statement that takes a computer from its owner, whole: one round trip, all or nothing.

When a lease ended is read from the database's clock while its row is locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sandbox.leasing import prepared
from sandbox.models import Sandbox

_END = """
WITH ended AS (
    UPDATE sandbox_lease
    SET state = %(state)s, ending = %(ending)s, release_reason = %(reason)s,
        released_at = clock_timestamp(), human_control = false
    WHERE id = %(lease)s AND state = 'active'
        AND (%(late)s::timestamptz IS NULL OR expires_at <= %(late)s)
        AND (%(hands)s::boolean OR NOT human_control)
    RETURNING id, sandbox_id, epoch, released_at
), freed AS (
    UPDATE sandbox_sandbox s
    SET epoch = s.epoch + 1, state = %(sandbox_state)s, state_deadline = %(deadline)s,
        cause = %(cause)s
    FROM ended WHERE s.id = ended.sandbox_id AND s.epoch = ended.epoch
    RETURNING s.epoch, s.provider, s.host, s.handle
), revoked AS (
    DELETE FROM sandbox_streamticket t USING ended WHERE t.lease_id = ended.id AND t.used_at IS NULL
), written AS (
    INSERT INTO sandbox_auditevent (kind, actor, host, sandbox, lease, epoch, detail)
    SELECT 'lease.' || %(state)s::text, %(actor)s, s.host, s.name, ended.id, ended.epoch,
        jsonb_build_object('ending', %(ending)s::text, 'reason', %(reason)s::text)
    FROM ended JOIN sandbox_sandbox s ON s.id = ended.sandbox_id
)
SELECT ended.released_at, EXISTS (
        SELECT FROM sandbox_streamticket t WHERE t.lease_id = ended.id AND t.used_at IS NOT NULL),
    freed.epoch, coalesce(freed.provider, ''), coalesce(freed.handle::text, ''),
    EXISTS (SELECT FROM sandbox_host h WHERE h.name = freed.host AND h.address <> '')
FROM ended LEFT JOIN freed ON true
"""


@dataclass(frozen=True, slots=True)
class End:
    """Which lease ends, as what (a Lease.State and a Lease.Ending), and why.

    Its computer becomes `sandbox_state`, and its host has `within` for what follows.
    """

    lease: int
    state: str
    ending: str
    reason: str
    sandbox_state: str
    within: timedelta


@dataclass(frozen=True, slots=True)
class Ended:
    """A lease that is over since `at`; `watched`: a screen of it has been opened.

    `epoch` is the computer's now, None where the computer was not the lease's any more. `handle` is
    the JSON of its Handle; `gateway`: only its own host reaches it.
    """

    at: datetime
    watched: bool
    epoch: int | None
    provider: str
    handle: str
    gateway: bool


def end(
    what: End, *, by: str, now: datetime, only_late: bool = False, hands: bool = True
) -> Ended | None:
    """End the lease if it is active (with `only_late`: and expired).

    Without `hands` one whose owner's hand has control is left alone. The epoch rises first: a late
    caller is refused while the computer is being reset.
    """
    failed = what.sandbox_state == Sandbox.State.FAILED
    rows = prepared.run(
        _END,
        {
            "lease": what.lease,
            "state": str(what.state),
            "ending": str(what.ending),
            "reason": what.reason[:200],
            "sandbox_state": str(what.sandbox_state),
            "cause": what.reason if failed else "",
            "deadline": now + what.within,
            "late": now if only_late else None,
            "hands": hands,
            "actor": by,
        },
    )
    return Ended(*rows[0]) if rows else None
