"""Quotas hold whatever a person asks for at the same time."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

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


@pytest.mark.django_db(transaction=True)
def test_the_same_wish_twice_at_once_is_one_computer_within_the_quota(annotator: Any) -> None:
    """The second waits for the first one's lock, and has read that there is no lease yet."""
    quota.set_most(user=annotator, most=1)
    first, second = make_sandbox("desk-1"), make_sandbox("desk-2")
    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            lease = acquire(annotator, "same")
            again = others.submit(_acquire_and_close, annotator, "same")
            _until_somebody_waits_for_a_lock()
        assert again.result(30) == lease
    assert {first.leases.count(), second.leases.count()} == {0, 1}


def _acquire_and_close(owner: Any, key: str) -> Lease:
    try:
        return acquire(owner, key)
    finally:
        connection.close()


def _until_somebody_waits_for_a_lock() -> None:
    deadline = time.monotonic() + 30
    with connection.cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            )
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waits for an advisory lock")
