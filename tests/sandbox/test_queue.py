"""The queue for computers: who waits is served in a fair order, and nobody jumps it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sandbox.leasing import leases, queue, reaper
from sandbox.models import AuditEvent, Lease, LeaseRequest, Pool, Sandbox
from tests.sandbox.rows import acquire, at_once, make_ready, make_sandbox

AGENT = Lease.Purpose.AGENT
State = LeaseRequest.State


def wait(key: str, owner: Any = None, **kwargs: Any) -> leases.NoCapacity:
    """Ask where nothing is free."""
    kwargs.setdefault("purpose", AGENT)
    with pytest.raises(leases.NoCapacity) as full:
        acquire(owner, key, **kwargs)
    return full.value


def asked(key: str, **fields: Any) -> None:
    LeaseRequest.objects.filter(idempotency_key=key).update(**fields)


@pytest.fixture
def sandbox(db: None) -> Sandbox:
    """The only computer, which is leased."""
    made = make_sandbox()
    acquire(None, "holder", purpose=AGENT)
    return made


def test_waiting_callers_know_their_place(annotator: Any) -> None:
    assert wait("a").position == 1
    second = wait("b")
    assert second.position == 2 and second.eta_s is None and 1 <= second.retry_after_s <= 10
    assert "the pool is empty" in str(second) and "number 2 in the queue" in str(second)
    assert wait("person", annotator, purpose=Lease.Purpose.HUMAN).position == 1
    assert wait("a").position == 2  # people come first; asking again is not asking twice
    assert LeaseRequest.objects.count() == 3


def test_a_freed_computer_goes_to_the_first_and_to_no_newcomer(sandbox: Sandbox) -> None:
    wait("first")
    wait("second")
    make_ready(sandbox)
    assert wait("newcomer").position == 3
    assert wait("second").position == 2
    assert acquire(None, "first", purpose=AGENT).sandbox_id == sandbox.pk
    request = LeaseRequest.objects.get(idempotency_key="first")
    assert request.state == State.GRANTED
    assert request.lease.request == request
    assert wait("second").position == 1


def test_two_free_computers_serve_the_first_two_in_any_order(sandbox: Sandbox) -> None:
    wait("first")
    wait("second")
    wait("third")
    make_ready(sandbox)
    make_sandbox("desk-2")
    assert wait("third").position == 3
    assert acquire(None, "second", purpose=AGENT).state == Lease.State.ACTIVE
    assert acquire(None, "first", purpose=AGENT).state == Lease.State.ACTIVE


def test_turns_go_round_the_tenants(db: None) -> None:
    for number in range(4):
        wait(f"big-{number}", tenant="big")
    for number in range(2):
        wait(f"small-{number}", tenant="small")
    order = [row.idempotency_key for row in queue.waiting(None)]
    assert order == ["big-0", "small-0", "big-1", "small-1", "big-2", "big-3"]
    served = []
    for number in range(4):  # and while it is served, small comes again and again
        make_sandbox(f"desk-{number}")
        key = queue.waiting(None)[0].idempotency_key
        acquire(None, key, purpose=AGENT)
        served.append(key)
        wait(f"later-{number}", tenant="small")
    assert served == ["big-0", "small-0", "big-1", "small-1"]
    assert [row.idempotency_key for row in queue.waiting(None)][:2] == ["big-2", "later-0"]


def test_who_stops_asking_holds_nobody_up_and_is_withdrawn(sandbox: Sandbox) -> None:
    wait("gone")
    wait("here")
    asked("gone", last_asked_at=timezone.now() - timedelta(seconds=20))
    make_ready(sandbox)
    assert acquire(None, "here", purpose=AGENT).state == Lease.State.ACTIVE
    assert reaper.reap() == 0  # not so long silent that it has lost its turn
    asked("gone", last_asked_at=timezone.now() - timedelta(seconds=61))
    assert reaper.reap() == 1
    row = LeaseRequest.objects.get(idempotency_key="gone")
    assert (row.state, row.reason) == (State.WITHDRAWN, "the caller stopped asking")
    assert wait("gone").position == 1  # back, and last


def test_a_withdrawn_caller_gets_nothing(sandbox: Sandbox) -> None:
    wait("waiter")
    assert queue.withdraw(key="waiter", reason="the page was closed")
    assert not queue.withdraw(key="waiter", reason="again")
    make_ready(sandbox)
    assert acquire(None, "newcomer", purpose=AGENT).sandbox_id == sandbox.pk
    event = AuditEvent.objects.get(kind="request.withdrawn")
    assert event.detail["reason"] == "the page was closed"


@pytest.mark.parametrize("reaped", [True, False])
def test_a_deadline_passes_with_its_reason_once(sandbox: Sandbox, reaped: bool) -> None:
    pool = Pool.objects.create(
        name=Pool.DEFAULT, provider="fake", degraded_at=timezone.now(),
        degraded_cause="no kernel image found",
    )  # fmt: skip
    wait("late")
    past = timezone.now() - timedelta(seconds=1)
    asked("late", bind_deadline=past, last_asked_at=past - timedelta(seconds=1))
    if reaped:
        assert reaper.reap() == 1
    with pytest.raises(queue.Refused, match=r"default: no kernel image found"):
        acquire(None, "late", purpose=AGENT)
    assert LeaseRequest.objects.get().state == State.REFUSED
    again = wait("late")
    assert not isinstance(again, queue.Refused) and again.position == 1
    assert LeaseRequest.objects.get().pool == pool


def test_a_key_is_its_owners_while_it_waits_too(annotator: Any, stranger: Any) -> None:
    wait("mine", annotator)
    make_sandbox()
    with pytest.raises(leases.KeyTaken, match="another owner's request"):
        acquire(stranger, "mine")
    assert acquire(annotator, "mine").state == Lease.State.ACTIVE


def test_a_request_whose_lease_was_deleted_waits_anew(sandbox: Sandbox) -> None:
    wait("a")
    make_ready(sandbox)
    acquire(None, "a", purpose=AGENT).delete()
    assert wait("a").position == 1


def test_the_reason_names_what_a_person_can_act_on(db: None) -> None:
    pool = Pool.objects.create(name="p", provider="fake")
    make_sandbox("a", pool=pool, state=Sandbox.State.PROVISIONING, cause="building the image")
    assert "1 provisioning (building the image)" in str(wait("a", pool=pool))
    Pool.objects.update(paused=True)
    make_sandbox("b", pool=pool)
    assert "the pool p is paused" in str(wait("a", pool=pool))


def test_the_estimate_comes_from_boots_then_from_leases_then_from_waits(sandbox: Sandbox) -> None:
    now = timezone.now()
    wait("a")
    make_ready(sandbox)
    lease = acquire(None, "a", purpose=AGENT)
    LeaseRequest.objects.update(enqueued_at=lease.granted_at - timedelta(seconds=7))
    Lease.objects.exclude(pk=lease.pk).update(released_at=now - timedelta(hours=1))
    assert wait("b").eta_s == pytest.approx(7)
    leases.release(lease, reason="done")
    Sandbox.objects.update(state=Sandbox.State.LEASED)
    assert wait("b").eta_s == pytest.approx(600)  # one ended in ten minutes
    Sandbox.objects.update(
        state=Sandbox.State.RESETTING, born_at=now - timedelta(seconds=5), ready_at=now
    )
    assert wait("b").eta_s == pytest.approx(5)
    assert wait("c").eta_s == pytest.approx(605)


@pytest.mark.django_db(transaction=True)
def test_waiting_in_line_ends_with_a_computer(annotator: Any) -> None:
    sandbox = make_sandbox()
    acquire(None, "holder", purpose=AGENT)

    def work(number: int) -> object:
        if number == 0:
            return acquire(annotator, "waiter", wait_s=20)
        while not LeaseRequest.objects.exists():
            pass
        make_ready(sandbox)
        return None

    lease = at_once(2, work)[0]
    assert isinstance(lease, Lease) and lease.sandbox_id == sandbox.pk


@pytest.mark.django_db(transaction=True)
def test_sixteen_in_line_are_served_in_turn_and_never_two_at_once() -> None:
    """Each takes a computer when it is due and gives it back; three computers go round."""
    for number in range(3):
        make_sandbox(f"desk-{number}")

    def work(number: int) -> object:
        lease = acquire(None, f"key-{number}", purpose=AGENT, tenant=f"t{number % 4}", wait_s=60)
        leases.release(lease, reason="done")
        make_ready(lease.sandbox)
        return lease

    results = at_once(16, work)
    assert all(isinstance(lease, Lease) for lease in results), results
    epochs = [(lease.sandbox_id, lease.epoch) for lease in results]
    assert len(set(epochs)) == 16
    assert not LeaseRequest.objects.filter(state=State.WAITING).exists()


@pytest.mark.django_db(transaction=True)
def test_a_waiter_who_withdraws_while_it_is_served_has_either_the_lease_or_nothing() -> None:
    for number in range(8):
        make_sandbox(f"desk-{number}", state=Sandbox.State.RESETTING)
        wait(f"key-{number}")
    Sandbox.objects.update(state=Sandbox.State.READY)

    def work(number: int) -> object:
        if number < 8:
            return acquire(None, f"key-{number}", purpose=AGENT)
        return queue.withdraw(key=f"key-{number - 8}", reason="gone")

    results = at_once(16, work)
    for lease, withdrawn in zip(results[:8], results[8:], strict=True):
        # Whoever was withdrawn first and asked after that waits anew, or was served anew.
        assert isinstance(lease, Lease | leases.NoCapacity), lease
        if not withdrawn:
            assert isinstance(lease, Lease)
    held = [lease.sandbox_id for lease in results[:8] if isinstance(lease, Lease)]
    assert len(held) == len(set(held)) == Lease.objects.filter(state="active").count()
