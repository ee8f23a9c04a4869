"""The host makes computers be what their rows say; fake computers, a real database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from sandbox import pool
from sandbox.host import orphans
from sandbox.leasing import leases
from sandbox.models import AuditEvent, Lease, Pool, Sandbox
from sandbox.provider import DesktopLost, Handle, SandboxSpec, StaleLease
from sandbox.providers.fake import FakeProvider
from tests.sandbox.inline import MakeHost, count, join, make_host, make_row, steps
from trajectory import Move

__all__ = ["make_host"]
pytestmark = pytest.mark.django_db
State = Sandbox.State


def _lease(key: str = "k") -> Lease:
    return leases.acquire(owner=None, purpose="agent", idempotency_key=key)


def test_keeps_as_many_warm_as_asked(make_host: MakeHost) -> None:
    host = make_host(warm=2)
    steps(host)
    assert count(State.READY) == 2
    _lease()
    steps(host)
    assert count(State.READY) == 2
    assert count(State.LEASED) == 1


def test_never_more_than_the_most(make_host: MakeHost) -> None:
    host = make_host(warm=3, most=2)
    steps(host)
    assert count(State.READY) == 2
    _lease("a")
    _lease("b")
    for _ in range(5):
        host.step()
    assert Sandbox.objects.count() == 2


def test_a_released_computer_comes_back_as_another_start(
    make_host: MakeHost,
) -> None:
    host = make_host(most=1)
    steps(host)
    assert count(State.READY) == 1
    lease = _lease()
    old = leases.connect(lease)
    before = Sandbox.objects.get()
    leases.release(lease, reason="done")
    steps(host)
    assert count(State.READY) == 1
    after = Sandbox.objects.get()
    assert after.handle["boot_id"] != before.handle["boot_id"]
    assert (after.reuse_count, after.epoch) == (1, before.epoch + 1)
    with pytest.raises(DesktopLost):
        old.observe()
    fresh = FakeProvider().connect(after.as_handle())
    with pytest.raises(StaleLease):
        fresh.perform(Move(1, 1), epoch=lease.epoch, action_id="late")


def test_a_dead_leased_computer_loses_its_lease_and_is_replaced(
    make_host: MakeHost,
) -> None:
    host = make_host(most=1)
    steps(host)
    assert count(State.READY) == 1
    lease = _lease()
    dead = Sandbox.objects.get()
    FakeProvider().kill(dead.as_handle())
    steps(host)
    assert count(State.READY) == 1
    lease.refresh_from_db()
    dead.refresh_from_db()
    assert lease.state == Lease.State.LOST
    assert "its process is gone" in lease.release_reason
    assert dead.state == State.GONE
    assert "its process is gone" in dead.cause
    assert dead.as_handle() not in FakeProvider().running()


def test_a_new_host_adopts_what_runs_and_ends_what_nobody_knows(
    make_host: MakeHost,
) -> None:
    first = make_host()
    steps(first)
    assert count(State.READY) == 1
    boot_id = Sandbox.objects.get().handle["boot_id"]
    orphan = FakeProvider().start(SandboxSpec("orphan"))
    second = make_host()
    steps(second)
    assert orphan not in FakeProvider().running()
    assert Sandbox.objects.get().handle["boot_id"] == boot_id
    assert AuditEvent.objects.get(kind="orphan.ended").sandbox == "orphan"


def test_an_orphan_is_ended_only_when_it_has_been_one_for_long(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "SYNC_EVERY_S", 3600.0)
    orphan = FakeProvider().start(SandboxSpec("orphan"))
    host = make_host(warm=0)
    for _ in range(5):
        host.orphans.sync()
    assert orphan in FakeProvider().running()


def test_another_hosts_computer_in_the_same_place_is_no_orphan(
    make_host: MakeHost,
) -> None:
    theirs = FakeProvider().start(SandboxSpec("theirs"))
    make_row(name="theirs", host="there", state=State.READY)
    host = make_host(warm=0)
    assert host.orphans.sync() == []
    assert theirs in FakeProvider().running()


def test_a_row_whose_computer_went_while_no_host_ran(make_host: MakeHost) -> None:
    first = make_host()
    steps(first)
    FakeProvider().stop(Sandbox.objects.get().as_handle())
    second = make_host()
    steps(second)
    assert (count(State.GONE), count(State.READY)) == (1, 1)
    assert first.idle()


def test_an_interrupted_start_is_begun_again(make_host: MakeHost) -> None:
    host = make_host()
    row = pool.replenish(Pool.objects.get())[0]
    FakeProvider().start(SandboxSpec(row.name))
    steps(host)
    assert count(State.READY) == 1
    assert Sandbox.objects.get().pk == row.pk


def test_nothing_stays_in_a_middle_state(make_host: MakeHost) -> None:
    host = make_host(warm=0)
    stuck = Sandbox.objects.create(
        name="stuck", provider="fake", host="here",
        state_deadline=timezone.now() - timedelta(seconds=1),
    )  # fmt: skip
    steps(host)
    assert count(State.GONE) == 1
    stuck.refresh_from_db()
    assert stuck.cause == "still provisioning at its deadline"


def test_other_hosts_computers_are_left_alone(make_host: MakeHost) -> None:
    host = make_host()
    join("there")
    theirs = make_row(name="theirs", host="there", state=State.PROVISIONING)
    steps(host)
    assert count(State.READY) == 1
    theirs.refresh_from_db()
    assert theirs.state == State.PROVISIONING


def test_stop_all_ends_every_computer(make_host: MakeHost) -> None:
    host = make_host(warm=2)
    steps(host)
    assert count(State.READY) == 2
    lease = _lease()
    host.stop_all()
    lease.refresh_from_db()
    assert lease.state == Lease.State.LOST
    assert count(State.GONE) == 2
    assert FakeProvider().running() == []


def test_a_reset_without_a_new_start_is_not_believed() -> None:
    handle = Handle("fake", "one", "same-boot")
    row = make_row(state=State.RESETTING, handle=Sandbox.handle_record(handle))
    assert not pool.mark_ready(row, handle)
    row.refresh_from_db()
    assert row.state == State.FAILED
    assert "same boot_id" in row.cause


@pytest.mark.django_db(transaction=True)
def test_a_start_is_not_lost_where_the_database_was_cut_off_meanwhile(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    started: list[Handle] = []
    start = FakeProvider.start

    def cut(self: FakeProvider, spec: SandboxSpec) -> Handle:
        connection.connection.close()
        started.append(start(self, spec))
        return started[-1]

    monkeypatch.setattr(FakeProvider, "start", cut)
    steps(host)
    assert count(State.READY) == 1
    assert [handle.boot_id for handle in started] == [Sandbox.objects.get().handle["boot_id"]]


def test_late_verbs_change_nothing() -> None:
    row = make_row(state=State.GONE)
    assert not pool.mark_failed(row, cause="late")
    assert not pool.retire(row)
    assert not pool.request_reset(row, cause="late")
    assert not pool.mark_ready(row, Handle("fake", "one", "b"))
    row.refresh_from_db()
    assert (row.state, row.cause, row.epoch) == (State.GONE, "", 0)


def test_request_reset_fences_first() -> None:
    row = make_row(state=State.READY)
    assert pool.request_reset(row, cause="an admin asked")
    row.refresh_from_db()
    assert (row.state, row.epoch) == (State.RESETTING, 1)
