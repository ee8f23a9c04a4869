"""Leases: one owner at a time, whatever happens at once."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from sandbox import leases, reaper
from sandbox.capture import Captured
from sandbox.models import InputEvent, Lease, Sandbox
from sandbox.provider import Handle
from sandbox.relay import append
from sandbox.rfb import Key

State = Sandbox.State


def make_sandbox(name: str = "desk-1", *, age_s: int = 0, state: str = State.READY) -> Sandbox:
    handle = Handle(provider="fake", name=name, boot_id=f"boot-{name}")
    return Sandbox.objects.create(
        name=name,
        provider="fake",
        host="here",
        state=state,
        handle=Sandbox.handle_record(handle),
        ready_at=timezone.now() - timedelta(seconds=age_s),
    )


def acquire(owner: Any, key: str = "k", **kwargs: Any) -> Lease:
    return leases.acquire(owner=owner, purpose=Lease.Purpose.HUMAN, idempotency_key=key, **kwargs)


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """Run `work` in `count` threads that start together; return results and exceptions."""
    barrier, results = threading.Barrier(count), [None] * count

    def body(number: int) -> None:
        try:
            barrier.wait(10)
            results[number] = work(number)
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_the_longest_ready_is_leased_and_its_epoch_rises(annotator: Any) -> None:
    make_sandbox("young")
    old = make_sandbox("old", age_s=60)
    lease = acquire(annotator)
    old.refresh_from_db()
    assert lease.sandbox == old
    assert (old.state, old.epoch, lease.epoch) == (State.LEASED, 1, 1)


def test_no_capacity_says_what_the_pool_does(annotator: Any) -> None:
    with pytest.raises(leases.NoCapacity, match="the pool is empty"):
        acquire(annotator)
    make_sandbox(state=State.PROVISIONING)
    with pytest.raises(leases.NoCapacity, match="1 provisioning"):
        acquire(annotator)


def test_the_same_key_gives_the_same_lease_even_when_it_is_over(
    annotator: Any, stranger: Any
) -> None:
    make_sandbox()
    lease = acquire(annotator)
    assert acquire(annotator) == lease
    leases.release(lease, reason="done")
    assert acquire(annotator).state == Lease.State.RELEASED
    with pytest.raises(leases.KeyTaken):
        acquire(stranger)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_never_share_a_sandbox(annotator: Any) -> None:
    for number in range(3):
        make_sandbox(f"desk-{number}")
    results = at_once(8, lambda number: acquire(annotator, f"key-{number}"))
    won = [lease for lease in results if isinstance(lease, Lease)]
    assert len({lease.sandbox_id for lease in won}) == len(won) == 3
    assert sum(isinstance(r, leases.NoCapacity) for r in results) == 5


@pytest.mark.django_db(transaction=True)
def test_one_key_at_once_takes_one_sandbox(annotator: Any) -> None:
    for number in range(4):
        make_sandbox(f"desk-{number}")
    results = at_once(4, lambda _: acquire(annotator, "same"))
    assert len({lease.pk for lease in results}) == 1, results
    assert Sandbox.objects.filter(state=State.LEASED).count() == 1
    assert Sandbox.objects.get(state=State.LEASED).epoch == 1


@pytest.mark.django_db(transaction=True)
def test_the_database_itself_refuses_a_second_active_lease(annotator: Any) -> None:
    sandbox = make_sandbox()
    now = timezone.now()

    def insert(number: int) -> Lease:
        with transaction.atomic():
            return Lease.objects.create(
                sandbox=sandbox, epoch=1, idempotency_key=f"raw-{number}", owner=annotator,
                expires_at=now + timedelta(60), hard_expires_at=now + timedelta(60),
            )  # fmt: skip

    results = at_once(4, insert)
    assert sum(isinstance(r, Lease) for r in results) == 1
    assert sum(isinstance(r, IntegrityError) for r in results) == 3


def test_release_fences_resets_and_does_nothing_twice(annotator: Any) -> None:
    make_sandbox()
    lease = leases.release(acquire(annotator), reason="finished")
    assert (lease.state, lease.release_reason) == (Lease.State.RELEASED, "finished")
    assert (lease.sandbox.state, lease.sandbox.epoch) == (State.RESETTING, 2)
    assert lease.sandbox.state_deadline is not None
    leases.release(lease, reason="again")
    lease.sandbox.refresh_from_db()
    assert (lease.release_reason, lease.sandbox.epoch) == ("finished", 2)


def test_a_lost_computer_fails_with_its_cause(annotator: Any) -> None:
    make_sandbox()
    lease = leases.lose(acquire(annotator), cause="the guest died")
    assert lease.state == Lease.State.LOST
    assert (lease.sandbox.state, lease.sandbox.cause) == (
        State.FAILED,
        "the guest died",
    )


def test_renewing_never_shortens_and_stops_at_the_hard_end(annotator: Any) -> None:
    make_sandbox()
    lease = acquire(annotator, ttl=timedelta(minutes=30), hard_ttl=timedelta(hours=1))
    before = lease.expires_at
    Lease.objects.update(last_activity_at=timezone.now() - timedelta(minutes=1))
    leases.renew(lease, ttl=timedelta(minutes=1))
    lease.refresh_from_db()
    assert lease.expires_at == before
    leases.renew(lease, ttl=timedelta(hours=5))
    lease.refresh_from_db()
    assert lease.expires_at == lease.hard_expires_at


def test_renewing_often_writes_seldom(annotator: Any, django_assert_num_queries: Any) -> None:
    make_sandbox()
    lease = acquire(annotator, ttl=timedelta(minutes=2))
    written = Lease.objects.get().last_activity_at
    for _ in range(3):
        leases.renew(lease, ttl=timedelta(minutes=2))
    assert Lease.objects.get().last_activity_at == written
    Lease.objects.update(last_activity_at=written - timedelta(seconds=16))
    leases.renew(lease, ttl=timedelta(minutes=2))
    assert Lease.objects.get().last_activity_at >= written


def test_a_lease_that_is_over_says_why(annotator: Any) -> None:
    make_sandbox()
    lease = acquire(annotator)
    leases.release(lease, reason="the annotator went home")
    for verb in (leases.renew, leases.connect):
        with pytest.raises(leases.LeaseOver, match="went home"):
            verb(lease)
    with pytest.raises(leases.LeaseOver):
        leases.give_control(lease, human=True)
    leases.give_control(lease, human=False)  # taking away what nobody has is fine


@pytest.mark.django_db(transaction=True)
def test_reapers_at_once_end_each_lease_once(annotator: Any) -> None:
    for number in range(4):
        make_sandbox(f"desk-{number}")
        acquire(annotator, f"key-{number}")
    kept = Lease.objects.order_by("pk").last()
    assert kept is not None
    Lease.objects.exclude(pk=kept.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert sum(r for r in at_once(3, lambda _: reaper.reap()) if isinstance(r, int)) == 3
    assert set(Sandbox.objects.values_list("epoch", flat=True)) == {1, 2}
    assert Lease.objects.filter(state=Lease.State.EXPIRED).count() == 3
    assert reaper.reap() == 0
    reason = Lease.objects.filter(state=Lease.State.EXPIRED).first()
    assert reason is not None and "last renewed" in reason.release_reason


def test_control_is_given_and_taken(annotator: Any) -> None:
    make_sandbox()
    lease = acquire(annotator)
    leases.give_control(lease, human=True)
    assert Lease.objects.get().human_control
    leases.release(lease, reason="done")
    assert not Lease.objects.get().human_control


@pytest.mark.django_db(transaction=True)
def test_input_written_at_once_is_numbered_without_gap(annotator: Any) -> None:
    make_sandbox()
    lease = acquire(annotator)
    batch = [
        Captured(at=1.0, event=Key(97, True)),
        Captured(at=1.1, event=Key(97, False)),
    ]
    at_once(4, lambda _: append(lease.pk, batch))
    assert list(InputEvent.objects.values_list("seq", flat=True)) == list(range(1, 9))
