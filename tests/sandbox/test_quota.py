"""Quotas hold whatever a person asks for at the same time."""

from typing import Any

import pytest

from sandbox.leasing import leases, quota
from sandbox.models import Lease, LeaseRequest, Quota
from tests.sandbox.rows import acquire, at_once, make_sandbox


def test_without_a_quota_nobody_is_limited_and_agents_never_are(annotator: Any) -> None:
    for number in range(3):
        make_sandbox(f"desk-{number}")
    acquire(annotator, "a")
    quota.set_most(user=None, most=1)
    acquire(None, "b", purpose=Lease.Purpose.AGENT)
    acquire(None, "c", purpose=Lease.Purpose.AGENT)
    with pytest.raises(leases.QuotaFull):
        acquire(annotator, "d")


def test_held_and_waited_for_count_and_a_persons_own_quota_comes_first(
    annotator: Any, stranger: Any
) -> None:
    quota.set_most(user=None, most=0)
    quota.set_most(user=annotator, most=2)
    make_sandbox()
    lease = acquire(annotator, "held")
    with pytest.raises(leases.NoCapacity) as waits:
        acquire(annotator, "waits")
    assert waits.value.position == 1
    with pytest.raises(leases.NoCapacity) as again:
        acquire(annotator, "waits")  # its own request does not count against it
    assert not isinstance(again.value, leases.QuotaFull)
    with pytest.raises(leases.QuotaFull) as full:
        acquire(annotator, "third")
    assert (full.value.running, full.value.pending, full.value.most) == (1, 1, 2)
    assert full.value.retry_after_s > 0 and full.value.position == 0
    assert acquire(annotator, "held") == lease  # what is held is found, quota or not
    with pytest.raises(leases.QuotaFull):
        acquire(stranger, "theirs")
    quota.set_most(user=None, most=None)
    assert Quota.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_sixteen_requests_at_once_never_pass_the_quota(annotator: Any) -> None:
    quota.set_most(user=None, most=3)
    for number in range(16):
        make_sandbox(f"desk-{number}")
    results = at_once(16, lambda number: acquire(annotator, f"key-{number}"))
    assert sum(isinstance(r, Lease) for r in results) == 3, results
    assert sum(isinstance(r, leases.QuotaFull) for r in results) == 13


@pytest.mark.django_db(transaction=True)
def test_waiting_at_once_does_not_pass_it_either(annotator: Any) -> None:
    quota.set_most(user=None, most=3)
    results = at_once(8, lambda number: acquire(annotator, f"key-{number}"))
    assert all(isinstance(r, leases.NoCapacity) for r in results), results
    assert LeaseRequest.objects.count() == 3
