"""How many computers a person may hold and wait for at once: the only code that changes a Quota."""

from __future__ import annotations

from django.contrib.auth.models import User

from sandbox.leasing import prepared
from sandbox.leasing.queue import NoCapacity
from sandbox.models import Quota

RETRY_AFTER_S = 5.0

_COUNT = """
SELECT
    (SELECT count(*) FROM sandbox_lease
        WHERE owner_id = %(owner)s AND state = 'active' AND idempotency_key <> %(key)s),
    (SELECT count(*) FROM sandbox_leaserequest
        WHERE owner_id = %(owner)s AND state = 'waiting' AND idempotency_key <> %(key)s)
"""


class QuotaFull(NoCapacity):
    """The person holds and waits for as many computers as they may: `running` + `pending` of `most`."""

    def __init__(self, *, running: int, pending: int, most: int) -> None:
        super().__init__(
            f"the quota of {most} is used up: {running} held, {pending} waited for; give one back",
            retry_after_s=RETRY_AFTER_S,
        )
        self.running, self.pending, self.most = running, pending, most


def set_most(*, user: User | None, most: int | None) -> None:
    """Let `user` (None: everybody without a quota of their own) have `most`; None lifts the limit."""
    if most is None:
        Quota.objects.filter(user=user).delete()
    else:
        Quota.objects.update_or_create(user=user, defaults={"most": most})


def admit(owner: User, *, most: int, key: str) -> None:
    """Let `owner` have one more computer; raises QuotaFull. `claiming.look` has locked the owner.

    What has `key` is what is asked for and does not count: its lease may be a moment old.
    """
    running, pending = prepared.run(_COUNT, {"owner": owner.pk, "key": key})[0]
    if running + pending >= most:
        raise QuotaFull(running=running, pending=pending, most=most)
