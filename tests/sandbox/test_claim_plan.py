"""The claim costs the same with 100 computers as with 10,000: it reads the first few of an index."""

from datetime import timedelta

import pytest
from django.utils import timezone

from benchmarks.lease_parts import fill, nodes, plan, reads
from sandbox.leasing.claiming import NEAR
from sandbox.models import LeaseRequest, Pool, Sandbox


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["at once", "newcomer", "waiting"])
def test_the_plan_is_flat(who: str) -> None:
    pool = Pool.objects.create(name="p", provider="fake")
    now = timezone.now()
    request = None
    if who == "waiting":
        request = LeaseRequest.objects.create(
            pool=pool, tenant="t", purpose="agent", priority=10, turn=1, idempotency_key="planned",
            enqueued_at=now, last_asked_at=now, bind_deadline=now + timedelta(hours=1),
        ).pk  # fmt: skip
    looked_at = []
    for more in (1000, 9000):
        fill(pool, more, leased_each=5)
        planned = plan(pool, request=request, at_once=who == "at once")
        scans = {
            (node["Node Type"], node.get("Index Name"))
            for node in nodes(planned)
            if node.get("Relation Name") == "sandbox_sandbox"
        }
        assert not any(kind == "Seq Scan" for kind, _ in scans), scans
        assert "sandbox_ready_of_pool" in {index for _, index in scans}
        looked_at.append(reads(planned, "sandbox_sandbox"))
    assert Sandbox.objects.count() == 10_000
    assert max(looked_at) <= 4 * NEAR, looked_at
    assert looked_at[0] == looked_at[1]
