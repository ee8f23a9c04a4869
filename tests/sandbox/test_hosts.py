"""Hosts beat, drain, fall silent and come back; proof of a reset; what can't be ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sandbox import jobs, pool
from sandbox.capabilities import Snapshots
from sandbox.host import HostProcess, hosts
from sandbox.leasing import leases
from sandbox.models import AuditEvent, Host, Lease, Pool, Sandbox
from sandbox.operations import fleet
from sandbox.pool import placement
from sandbox.proof import MARKER
from sandbox.provider import DesktopLost, Handle, ProvisionFailed, SandboxSpec
from sandbox.providers.fake import FakeProvider
from tests.sandbox.inline import MakeHost, count, join, make_host, make_row, steps

__all__ = ["make_host"]
pytestmark = pytest.mark.django_db
State = Sandbox.State
LONG_AGO = timedelta(seconds=31)


def _lease(key: str = "k") -> Lease:
    return leases.acquire(owner=None, purpose="agent", idempotency_key=key)


def _silence(name: str) -> None:
    Host.objects.filter(name=name).update(last_seen=timezone.now() - LONG_AGO)


def test_a_silent_host_loses_its_leases_and_computers_with_the_reason(make_host: MakeHost) -> None:
    host = make_host(warm=1)
    steps(host)
    lease = _lease()
    steps(host)
    assert (count(State.LEASED), count(State.READY)) == (1, 1)
    _silence("here")
    jobs.give_up_silent_hosts()
    lease.refresh_from_db()
    assert (lease.state, lease.ending) == (Lease.State.LOST, Lease.Ending.HOST)
    assert "host here was not seen since" in lease.release_reason
    causes = Sandbox.objects.filter(state=State.FAILED).values_list("cause", flat=True)
    assert len(causes) == 2 and all("was not seen since" in cause for cause in causes)
    assert AuditEvent.objects.filter(kind="host.silent", host="here").exists()
    assert hosts.give_up_silent() == []


def test_a_host_that_returns_ends_what_was_given_up_and_goes_on(make_host: MakeHost) -> None:
    host = make_host()
    steps(host)
    old = Sandbox.objects.get()
    _silence("here")
    hosts.give_up_silent()
    host._due_at.pop("beat")
    steps(host)
    assert Host.objects.get().state == Host.State.UP
    assert AuditEvent.objects.filter(kind="host.returned").count() == 1
    old.refresh_from_db()
    assert old.state == State.GONE
    assert old.as_handle() not in FakeProvider().running()
    assert count(State.READY) == 1


def test_what_a_host_leaves_for_good_is_written_off() -> None:
    join("lost", state=Host.State.DOWN)
    row = make_row(host="lost", state=State.FAILED, cause="broken", state_deadline=timezone.now())
    hosts.give_up_silent()
    row.refresh_from_db()
    assert (row.state, row.cause) == (State.GONE, "broken")


def test_what_ran_on_a_host_that_was_removed_is_given_up() -> None:
    row = make_row(host="removed", state=State.READY)
    hosts.give_up_silent()
    row.refresh_from_db()
    assert (row.state, row.cause) == (State.FAILED, "host removed is gone")


def test_draining_ends_what_is_idle_and_lets_leases_finish(make_host: MakeHost) -> None:
    host = make_host(warm=1)
    steps(host)
    lease = _lease()
    steps(host)
    assert hosts.drain(host.row, by="somebody") and not hosts.drain(host.row, by="somebody")
    host.row.refresh_from_db()
    steps(host)
    assert (count(State.LEASED), count(State.READY), count(State.GONE)) == (1, 0, 1)
    assert Sandbox.objects.get(state=State.GONE).cause == "host here is draining"
    leases.connect(lease).close()
    leases.release(lease, reason="done")
    steps(host)
    assert pool.of_host("here").count() == 0
    assert hosts.undrain(host.row, by="somebody")
    host.row.refresh_from_db()
    steps(host)
    assert count(State.READY) == 1


def test_a_host_that_starts_anew_goes_on_draining(make_host: MakeHost) -> None:
    hosts.drain(make_host().row, by="somebody")
    assert make_host().row.state == Host.State.DRAINING


def test_a_host_whose_row_was_removed_says_so(make_host: MakeHost) -> None:
    host = make_host()
    Host.objects.all().delete()
    with pytest.raises(hosts.HostRemoved, match="join anew"):
        host.step()


def test_two_hosts_share_a_pool(make_host: MakeHost) -> None:
    one, two = make_host("one", warm=1, slots=2), make_host("two", warm=1, slots=2)
    for _ in range(6):
        one.step()
        two.step()
    assert sorted(Sandbox.objects.values_list("host", "state")) == [
        ("one", State.READY), ("two", State.READY),
    ]  # fmt: skip


def test_several_pools_on_one_host(make_host: MakeHost) -> None:
    host = make_host(warm=1)
    small = Pool.objects.create(name="small", provider="fake", width=640, height=480, min_warm=1)
    steps(host)
    row = small.sandboxes.get()
    assert (row.state, row.width, row.height) == (State.READY, 640, 480)
    assert count(State.READY) == 2


def test_a_computer_of_a_provider_that_the_host_has_no_more(make_host: MakeHost) -> None:
    host = make_host(warm=0)
    row = make_row(provider="qemu", state=State.READY, boot="b")
    steps(host)
    row.refresh_from_db()
    assert row.state == State.GONE
    assert "has no provider 'qemu' any more" in row.cause


# -- resets are proved -------------------------------------------------------------------------------


def _reset(host: HostProcess) -> Sandbox:
    leases.release(_lease(), reason="done")
    steps(host)
    return Sandbox.objects.order_by("pk").first()


def test_a_home_that_was_not_renewed_is_no_reset(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(most=1)
    steps(host)
    real = FakeProvider.start

    def keeps_the_home(self: FakeProvider, spec: SandboxSpec) -> Handle:
        handle = real(self, spec)
        (self.connect(handle).home / MARKER).write_text("another-start")  # type: ignore[attr-defined]
        return handle

    monkeypatch.setattr(FakeProvider, "start", keeps_the_home)
    row = _reset(host)
    assert row.state in (State.FAILED, State.GONE)
    assert "still holds the files of start b'another-start'" in row.cause


def test_a_screen_of_another_size_is_no_reset(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(most=1)
    steps(host)
    real = FakeProvider.start
    monkeypatch.setattr(
        FakeProvider, "start", lambda self, spec: real(self, replace(spec, width=800, height=600))
    )
    assert _reset(host).cause == "it shows 800x600, not 1280x720"


class Restoring(FakeProvider):
    """A fake that goes back in time: the computer of a snapshot is a fresh one."""

    def __init__(self) -> None:
        self.kept: dict[str, SandboxSpec] = {}
        self.restored = 0

    def snapshot(self, handle: Handle, name: str) -> None:
        desktop = self.connect(handle)
        assert not (desktop.home / MARKER).exists()  # type: ignore[attr-defined]
        self.kept[handle.name] = SandboxSpec(handle.name)

    def restore(self, handle: Handle, name: str) -> Handle:
        if handle.name not in self.kept:
            raise ProvisionFailed(f"no snapshot {name} of {handle.name}")
        self.stop(handle)
        self.restored += 1
        return self.start(self.kept[handle.name])

    def snapshots(self, handle: Handle) -> list[str]:
        return ["clean"] if handle.name in self.kept else []

    def forget(self, handle: Handle, name: str) -> None:
        self.kept.pop(handle.name, None)


def test_a_pool_that_says_so_resets_by_restoring(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Restoring()
    assert isinstance(provider, Snapshots)
    monkeypatch.setattr(pool, "provider", lambda name: provider)
    host = make_host(most=1)
    Pool.objects.update(reset_by=Pool.ResetBy.SNAPSHOT)
    steps(host)
    row = _reset(host)
    assert (row.state, row.reuse_count, provider.restored) == (State.READY, 1, 1)
    provider.kept.clear()
    lost = Sandbox.objects.get()
    leases.release(_lease("again"), reason="done")
    steps(host)
    lost.refresh_from_db()
    assert "no snapshot clean" in lost.cause
    assert Sandbox.objects.order_by("pk").last().state == State.READY


# -- ends --------------------------------------------------------------------------------------------


def test_what_can_not_be_ended_is_tried_again_and_says_why(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(most=1)
    steps(host)
    row = Sandbox.objects.get()

    def stuck(self: FakeProvider, handle: Handle) -> None:
        raise DesktopLost("processes [7] survive SIGKILL")

    with monkeypatch.context() as patch:
        patch.setattr(FakeProvider, "stop", stuck)
        pool.retire(row, cause="an administrator asked")
        steps(host, 4)
    row.refresh_from_db()
    assert row.state == State.FAILED and row.state_deadline is not None
    assert row.cause == (
        "an administrator asked; not ended: DesktopLost: processes [7] survive SIGKILL"
    )
    steps(host)
    row.refresh_from_db()
    assert row.state == State.GONE


def test_ending_has_a_deadline_too(make_host: MakeHost) -> None:
    host = make_host(warm=0)
    late = timezone.now() - timedelta(seconds=1)
    row = make_row(state=State.DESTROYING, state_deadline=late, cause="asked")
    host._look_at_the_late()
    row.refresh_from_db()
    assert row.cause == "asked; not ended: still destroying at its deadline"
    assert row.state_deadline is not None and row.state_deadline > timezone.now()


def test_a_guest_that_misses_one_answer_is_not_given_up(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    steps(host)
    silent: list[Any] = [DesktopLost("busy")]

    def health(self: Any) -> dict[str, object]:
        raise silent[0]

    from sandbox.providers import fake

    with monkeypatch.context() as patch:
        patch.setattr(fake._Computer, "health", health)
        host.step()
        host.step()
    steps(host, 2)
    assert count(State.READY) == 1
    with monkeypatch.context() as patch:
        patch.setattr(fake._Computer, "health", health)
        for _ in range(3):
            host.step()
    assert Sandbox.objects.get(cause="lost: busy")


def test_probes_keep_ready_computers_fresh_in_one_statement(
    make_host: MakeHost, django_assert_num_queries: Any
) -> None:
    host = make_host(warm=3)
    steps(host)
    Sandbox.objects.update(probed_at=timezone.now() - timedelta(minutes=1))
    host.step()
    with django_assert_num_queries(1):
        host.computers.write_probes()
    fresh = timezone.now() - timedelta(seconds=30)
    assert Sandbox.objects.filter(probed_at__gt=fresh).count() == 3


def test_an_error_nobody_thought_of_is_kept(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: FakeProvider, spec: SandboxSpec) -> Handle:
        raise RuntimeError("surprise")

    monkeypatch.setattr(FakeProvider, "start", broken)
    steps(make_host(), 2)
    assert "RuntimeError: surprise" in Sandbox.objects.order_by("pk").first().cause


def test_a_host_whose_clock_is_slow_is_there_all_the_same(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_host()
    now = timezone.now
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: now() - timedelta(hours=1))
        hosts.beat(Host.objects.get())
    assert hosts.give_up_silent() == []
    assert [load.host.name for load in placement.loads("fake")] == ["here"]
    assert [figures.silent for figures in fleet.hosts()] == [False]
