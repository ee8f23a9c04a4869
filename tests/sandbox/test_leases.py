"""Leases: one owner at a time, whatever happens at once."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from sandbox.leasing import fence, leases, prepared, quota, reaper
from sandbox.models import AuditEvent, Host, InputEvent, Lease, Pool, Sandbox
from sandbox.provider import DesktopLost, SandboxSpec, StaleLease
from sandbox.providers.fake import FakeProvider
from sandbox.screen.capture import Captured
from sandbox.screen.relay import append
from sandbox.screen.rfb import Key
from tests.sandbox.rows import acquire, at_once, make_sandbox
from trajectory import Move

State = Sandbox.State


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


def test_a_host_that_is_draining_or_down_gets_no_lease(annotator: Any) -> None:
    for state in Host.State.values:
        Host.objects.create(name=f"host-{state}", state=state)
        make_sandbox(f"desk-{state}", host=f"host-{state}", age_s=60)
    assert acquire(annotator).sandbox.host == "host-up"
    with pytest.raises(leases.NoCapacity):
        acquire(annotator, "second")


def test_of_the_longest_ready_one_that_has_just_answered_is_preferred(annotator: Any) -> None:
    now = timezone.now()
    make_sandbox("silent", age_s=60, probed_at=now - timedelta(seconds=30))
    make_sandbox("answers", age_s=30, probed_at=now)
    make_sandbox("never", age_s=90)
    names = [acquire(annotator, f"key-{n}").sandbox.name for n in range(3)]
    assert names == ["answers", "silent", "never"]


def test_pools_are_apart_and_the_default_one_has_the_old_computers(annotator: Any) -> None:
    other = Pool.objects.create(name="other", provider="fake", purpose=Pool.Purpose.AGENT)
    default = Pool.objects.create(name=Pool.DEFAULT, provider="fake")
    make_sandbox("old", age_s=60)
    make_sandbox("of-default", pool=default)
    make_sandbox("of-other", pool=other, age_s=90)
    names = [acquire(annotator, f"key-{n}").sandbox.name for n in range(2)]
    assert names == ["of-default", "old"]
    with pytest.raises(leases.PoolRefuses, match="agent leases only"):
        acquire(annotator, "third", pool="other")
    with pytest.raises(leases.PoolRefuses, match="there are: default, other"):
        acquire(annotator, "third", pool="othre")
    lease = acquire(None, "third", pool=other, purpose=Lease.Purpose.AGENT)
    assert lease.sandbox.name == "of-other"


def test_an_ending_is_typed(annotator: Any, admin_user: Any) -> None:
    for number in range(5):
        make_sandbox(f"desk-{number}")
    mine, ended, lost, idle, capped = (acquire(annotator, f"key-{n}") for n in range(5))
    leases.release(mine, reason="done", by=annotator)
    leases.release(ended, reason="maintenance", by=admin_user)
    leases.lose(lost, cause="the machine is silent", ending=Lease.Ending.HOST)
    past = timezone.now() - timedelta(seconds=1)
    Lease.objects.filter(pk=idle.pk).update(expires_at=past)
    Lease.objects.filter(pk=capped.pk).update(expires_at=past, hard_expires_at=past)
    assert reaper.reap() == 2
    endings = list(Lease.objects.order_by("pk").values_list("ending", flat=True))
    assert endings == ["done", "admin", "host", "idle", "cap"]
    with pytest.raises(leases.LeaseOver) as over:
        leases.renew(lost)
    assert over.value.ending == Lease.Ending.HOST


def test_people_get_grace_and_are_warned_before_it(annotator: Any) -> None:
    make_sandbox("desk-1")
    make_sandbox("desk-2")
    ttl = timedelta(seconds=60)
    person = acquire(annotator, "person", ttl=ttl)
    agent = acquire(None, "agent", purpose=Lease.Purpose.AGENT, ttl=ttl)
    of_person, of_agent = leases.times(person), leases.times(agent)
    assert of_person.ends_at - of_person.quiet_at == leases.GRACE
    assert of_agent.ends_at == of_agent.quiet_at
    assert of_person.warn_at == of_person.quiet_at
    # Away for longer than the ttl, and back within the grace: the computer is still theirs.
    Lease.objects.update(expires_at=timezone.now() + leases.GRACE / 2)
    leases.renew(person, ttl=ttl)
    person.refresh_from_db()
    assert person.expires_at > timezone.now() + leases.GRACE
    soon = acquire(annotator, "person")
    soon.hard_expires_at = timezone.now() + timedelta(minutes=1)
    assert leases.times(soon).warn_at < timezone.now()


def test_the_trail_says_who_held_what_and_cannot_be_changed(annotator: Any) -> None:
    make_sandbox()
    lease = leases.release(acquire(annotator), reason="done")
    granted, released = AuditEvent.objects.order_by("pk")
    assert (granted.kind, granted.actor) == ("lease.granted", f"user:{annotator.pk}")
    assert (granted.sandbox, granted.host, granted.lease, granted.epoch) == (
        "desk-1", "here", lease.pk, 1,
    )  # fmt: skip
    assert (released.kind, released.detail) == (
        "lease.released", {"ending": "done", "reason": "done"},
    )  # fmt: skip
    for change in (
        lambda: AuditEvent.objects.update(actor="nobody"),
        lambda: AuditEvent.objects.all().delete(),
    ):
        with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
            change()


@pytest.mark.django_db(transaction=True)
def test_a_claim_and_a_release_are_one_statement_each(
    annotator: Any, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Pool.objects.create(name="own", provider="fake")
    make_sandbox("desk-1", pool=own)
    make_sandbox("desk-2", pool=own)
    ran: list[str] = []
    run = prepared.run
    monkeypatch.setattr(prepared, "run", lambda text, of: ran.append(text) or run(text, of))
    with django_assert_num_queries(0):  # Django's own
        lease = acquire(annotator, "free", pool="own")
        assert len(ran) == 1
        leases.release(lease, reason="done")
        assert len(ran) == 2
    quota.set_most(user=None, most=5)
    with django_assert_num_queries(2):  # BEGIN and COMMIT
        acquire(annotator, "counted", pool="own")
    assert len(ran) == 6  # and look, count, claim


@pytest.mark.django_db(transaction=True)
def test_the_guest_refuses_its_old_holder_once_release_has_returned(annotator: Any) -> None:
    provider = FakeProvider()
    handle = provider.start(SandboxSpec("desk-1"))
    try:
        make_sandbox(handle=Sandbox.handle_record(handle))
        lease = acquire(annotator)
        desktop = leases.connect(lease)
        desktop.perform(Move(1, 1), epoch=lease.epoch, action_id="in time")
        with transaction.atomic():
            leases.release(lease, reason="done")
            # It may still be undone: until it is not, the lease is its holder's.
            desktop.perform(Move(2, 2), epoch=lease.epoch, action_id="not yet")
        with pytest.raises(StaleLease):
            desktop.perform(Move(3, 3), epoch=lease.epoch, action_id="late")
    finally:
        provider.stop(handle)


@pytest.mark.django_db(transaction=True)
def test_a_guest_that_does_not_answer_holds_no_release_up(
    annotator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        asked.set()
        answers.wait(60)
        raise DesktopLost("it hung")

    monkeypatch.setattr(fence, "WITHIN_S", 0.01)
    monkeypatch.setattr(FakeProvider, "connect", hang)
    make_sandbox()
    lease = leases.release(acquire(annotator), reason="done")
    assert asked.wait(60)
    answers.set()
    assert lease.sandbox.state == State.RESETTING
