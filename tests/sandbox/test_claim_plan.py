"""The claim costs the same with 100 computers as with 10,000: it reads the first few of an index."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from benchmarks.lease_parts import fill, nodes, plan, reads
from sandbox.leasing.claiming import NEAR
from sandbox.models import LeaseRequest, Pool, Sandbox


@pytest.mark.django_db
def test_the_plan_is_flat() -> None:
    pool = Pool.objects.create(name="p", provider="fake")
    looked_at: dict[str, list[int]] = {"at once": [], "newcomer": [], "waiting": []}
    for more in (1000, 9000):
        fill(pool, more, leased_each=5)
        for who, seen in looked_at.items():
            with transaction.atomic():
                planned = plan(pool, request=_request(pool, who), at_once=who == "at once")
                transaction.set_rollback(True)
            scans = {
                (node["Node Type"], node.get("Index Name"))
                for node in nodes(planned)
                if node.get("Relation Name") == "sandbox_sandbox"
            }
            assert not any(kind == "Seq Scan" for kind, _ in scans), (who, scans)
            assert "sandbox_ready_of_pool" in {index for _, index in scans}, who
            seen.append(reads(planned, "sandbox_sandbox"))
    assert Sandbox.objects.count() == 10_000
    for few, many in looked_at.values():
        assert few == many <= 4 * NEAR, looked_at


def _request(pool: Pool, who: str) -> int | None:
    if who != "waiting":
        return None
    now = timezone.now()
    return LeaseRequest.objects.create(
        pool=pool, tenant="t", purpose="agent", priority=10, turn=1, idempotency_key="planned",
        enqueued_at=now, last_asked_at=now, bind_deadline=now + timedelta(hours=1),
    ).pk  # fmt: skip
