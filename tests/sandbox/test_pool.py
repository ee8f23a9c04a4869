"""A pool keeps what it should: enough warm, not too many, none worn, none of a broken kind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sandbox import pool
from sandbox.host import hosts
from sandbox.leasing import leases
from sandbox.models import AuditEvent, Lease, LeaseRequest, Pool, Sandbox
from sandbox.pool import breaker, demand
from sandbox.provider import Handle, ProvisionFailed, SandboxSpec
from sandbox.providers.fake import FakeProvider
from tests.sandbox.inline import MakeHost, count, join, make_host, make_pool, make_row, steps
from tests.sandbox.rows import acquire, make_ready, make_sandbox

__all__ = ["make_host"]
pytestmark = pytest.mark.django_db
State = Sandbox.State


@pytest.mark.parametrize(
    ("figures", "wanted"),
    [
        ({}, 1),
        ({"waiting": 2}, 2),
        ({"rate": 1.0, "boot_s": 2.5}, 3),
        ({"rate": 1.0, "boot_s": 2.5, "waiting": 1}, 4),
        ({"rate": 9.0, "boot_s": 9.0}, 5),
        ({"rate": 0.01, "boot_s": 1.0}, 1),
        ({"min_warm": 0}, 0),
        ({"min_warm": 9}, 5),
    ],
)
def test_the_target_follows_demand_between_its_bounds(figures: dict[str, Any], wanted: int) -> None:
    said = {"min_warm": 1, "max_warm": 5, "rate": 0.0, "boot_s": 0.0, "waiting": 0, **figures}
    assert demand.target(**said) == wanted


def test_the_claim_rate_forgets_and_counts_its_own_pool() -> None:
    rules, now = make_pool(), timezone.now()
    for number, (age_s, theirs) in enumerate([(0, rules), (0, None), (60, rules), (6000, rules)]):
        row = make_row(f"r{number}", pool=theirs)
        lease = Lease.objects.create(
            sandbox=row, epoch=1, idempotency_key=str(number), expires_at=now, hard_expires_at=now
        )
        Lease.objects.filter(pk=lease.pk).update(granted_at=now - timedelta(seconds=age_s))
    assert demand.claim_rate(rules) == pytest.approx((1 + 0.3679) / 60, rel=0.05)


def test_boots_are_measured_from_the_rows() -> None:
    rules, now = make_pool(), timezone.now()
    for number in range(20):
        make_row(
            f"b{number}", pool=rules, born_at=now - timedelta(seconds=number + 1), ready_at=now
        )
    assert demand.boot_p95(rules) == pytest.approx(19, abs=0.1)


def test_who_waits_raises_the_target(make_host: MakeHost) -> None:
    host = make_host(warm=0, most=3)
    steps(host)
    assert count(State.READY) == 0
    for number in range(2):
        with pytest.raises(leases.NoCapacity):
            leases.acquire(owner=None, purpose="agent", idempotency_key=str(number), tenant="t")
    assert LeaseRequest.objects.filter(state="waiting").count() == 2
    steps(host)
    assert count(State.READY) == 2


def test_what_nobody_asked_for_is_retired_after_its_time(make_host: MakeHost) -> None:
    host = make_host(warm=3)
    steps(host)
    Pool.objects.update(min_warm=1)
    steps(host)
    assert count(State.READY) == 3
    Sandbox.objects.update(ready_at=timezone.now() - timedelta(hours=2))
    steps(host)
    assert (count(State.READY), count(State.GONE)) == (1, 2)
    gone = Sandbox.objects.filter(state=State.GONE).values_list("cause", flat=True)
    assert set(gone) == {"not needed: 1 warm are enough"}


def test_a_paused_pool_starts_nothing(make_host: MakeHost) -> None:
    host = make_host(warm=2)
    pool.pause(Pool.objects.get(), by="somebody")
    steps(host)
    assert Sandbox.objects.count() == 0
    pool.resume(Pool.objects.get(), by="somebody")
    steps(host)
    assert count(State.READY) == 2


def test_a_pool_that_changed_replaces_what_is_warm(make_host: MakeHost) -> None:
    host = make_host()
    steps(host)
    Pool.objects.update(width=800, height=600)
    steps(host)
    ready = Sandbox.objects.get(state=State.READY)
    assert (ready.width, ready.height) == (800, 600)
    assert Sandbox.objects.get(state=State.GONE).cause == "the pool's width is 800 now"


def _use_once(host: Any) -> None:
    key = str(Lease.objects.count())
    lease = leases.acquire(owner=None, purpose="agent", idempotency_key=key)
    leases.release(lease, reason="done")
    steps(host)


def test_a_computer_is_not_used_more_often_than_its_pool_says(make_host: MakeHost) -> None:
    host = make_host(most=1)
    Pool.objects.update(max_reuses=2)
    steps(host)
    for _ in range(3):
        _use_once(host)
    assert (count(State.READY), count(State.GONE)) == (1, 1)
    worn = Sandbox.objects.get(state=State.GONE)
    assert worn.cause == "worn: used again 2 times"
    assert Lease.objects.filter(sandbox=worn).count() == 3


def test_an_old_computer_is_replaced_also_if_nobody_used_it(make_host: MakeHost) -> None:
    host = make_host()
    steps(host)
    Sandbox.objects.update(created_at=timezone.now() - timedelta(hours=13))
    steps(host)
    assert Sandbox.objects.get(state=State.GONE).cause == "worn: 13.0 hours old"
    assert count(State.READY) == 1


def test_three_failed_starts_degrade_the_pool_and_one_trial_mends_it(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: FakeProvider, spec: SandboxSpec) -> Handle:
        raise ProvisionFailed("Xvnc: no memory")

    host = make_host(warm=2)
    with monkeypatch.context() as patch:
        patch.setattr(FakeProvider, "start", broken)
        steps(host, 9)
    rules = Pool.objects.get()
    assert rules.failures >= 3 and rules.degraded_cause == "Xvnc: no memory"
    tried = Sandbox.objects.exclude(state=State.PROVISIONING)
    assert set(tried.values_list("cause", flat=True)) == {"Xvnc: no memory"}
    alarm = AuditEvent.objects.get(kind="pool.degraded")
    assert alarm.detail["cause"] == "Xvnc: no memory"
    before = Sandbox.objects.count()
    steps(host)
    assert Sandbox.objects.count() == before, "nothing is tried during the pause"

    Pool.objects.update(degraded_at=timezone.now() - timedelta(minutes=5))
    steps(host)
    rules.refresh_from_db()
    assert (rules.failures, rules.degraded_cause, rules.degraded_at) == (0, "", None)
    assert AuditEvent.objects.filter(kind="pool.recovered").count() == 1
    assert count(State.READY) == 2


def test_the_pause_doubles_up_to_a_minute() -> None:
    now = timezone.now()
    pauses = [
        round(breaker.pause_s(Pool(failures=failures, degraded_at=now)))
        for failures in (2, 3, 4, 5, 6, 7, 99)
    ]
    assert pauses == [0, 5, 10, 20, 40, 60, 60]


def test_a_row_that_no_host_takes_is_given_up_with_the_reason() -> None:
    rules = make_pool(min_warm=1)
    join("full", slots=1)
    (row,) = pool.replenish(rules)
    Sandbox.objects.update(state_deadline=timezone.now() - timedelta(seconds=1))
    pool.replenish(rules)
    row.refresh_from_db()
    assert (row.state, row.cause) == (State.GONE, "no host with fake took it within 60 s")


def test_no_row_is_made_where_no_host_has_room() -> None:
    rules = make_pool(min_warm=3)
    assert pool.replenish(rules) == []
    join("small", slots=1)
    assert len(pool.replenish(rules)) == 1
    assert pool.replenish(rules) == []


def test_the_settings_make_the_default_pool_and_change_it() -> None:
    lost = make_row("lost", state=State.READY)
    join("one")
    first = pool.configure(provider="fake", warm=1, most=4)
    join("two")
    second = pool.configure(provider="fake", warm=2, most=3)
    assert first.pk == second.pk and second.name == Pool.DEFAULT
    assert (second.min_warm, second.max_warm, second.most) == (4, 6, 6)
    lost.refresh_from_db()
    assert lost.pool == second


def test_what_was_seen_of_an_old_holder_takes_nothing_from_the_next(annotator: Any) -> None:
    seen = make_sandbox()
    old = acquire(annotator, "old")
    seen.refresh_from_db()
    leases.release(old, reason="done")
    make_ready(seen)
    new = acquire(annotator, "new")
    assert not pool.mark_failed(seen, cause="it was lost, a while ago")
    hosts._give_up(seen, "its host was silent, a while ago")
    new.refresh_from_db()
    assert new.state == Lease.State.ACTIVE
