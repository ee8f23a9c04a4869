"""A computer gets the rules of its pool, and its row says which limits it ran into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sandbox import pool
from sandbox.host import HostProcess, limits
from sandbox.host.computers import Computers
from sandbox.leasing import leases
from sandbox.models import AuditEvent, Lease, Pool, Sandbox
from sandbox.operations import fleet
from sandbox.provider import Handle, SandboxSpec
from sandbox.providers.fake import FakeProvider
from tests.sandbox.inline import MakeHost, count, make_host, make_row, steps

__all__ = ["make_host"]
pytestmark = pytest.mark.django_db
State = Sandbox.State


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> dict[str, SandboxSpec]:
    """What the provider was asked to start, by name."""
    asked: dict[str, SandboxSpec] = {}
    start = FakeProvider.start
    monkeypatch.setattr(
        FakeProvider,
        "start",
        lambda self, spec: asked.setdefault(spec.name, spec) and start(self, spec),
    )
    return asked


class Counting(FakeProvider):
    """Fake computers on a host that counts: all of them have run into the same limits."""

    def __init__(self, places: Sequence[dict[str, object]] = ()) -> None:
        self.places = list(places) or [{"host": "evil.test", "port": 443, "why": "not listed"}]

    def causes(self, handle: Handle) -> list[str]:
        return ["2 processes were ended for memory"]

    def refused(self, handle: Handle) -> list[dict[str, object]]:
        return self.places


def _counts(host: HostProcess) -> HostProcess:
    host.computers = Computers(host.name, {"fake": Counting()})
    return host


@pytest.mark.parametrize(
    ("said", "network", "allow"),
    [
        ({}, "none", ()),
        ({"egress": ["example.org", "*.site.test"]}, "allowlist", ("example.org", "*.site.test")),
        ({"network": "allowlist"}, "allowlist", ()),
        ({"network": "none", "egress": ["example.org"]}, "none", ("example.org",)),
    ],
)
def test_a_pools_way_out_reaches_the_provider(
    make_host: MakeHost,
    specs: dict[str, SandboxSpec],
    said: dict[str, Any],
    network: str,
    allow: tuple[str, ...],
) -> None:
    host = make_host()
    Pool.objects.update(**said)
    steps(host)
    assert count(State.READY) == 1
    spec = specs[Sandbox.objects.get().name]
    assert (spec.network, spec.allow) == (network, allow)


def test_computers_with_old_rules_are_not_used_again(
    make_host: MakeHost, specs: dict[str, SandboxSpec]
) -> None:
    host = make_host(warm=1, most=2)
    steps(host)
    lease = leases.acquire(owner=None, purpose="agent", idempotency_key="k")
    steps(host)
    Pool.objects.update(egress=["example.org"])
    leases.release(lease, reason="done")  # to be reset, as the rules were when it was made
    steps(host, 12)
    gone = Sandbox.objects.filter(state=State.GONE)
    assert {row.cause for row in gone} == {"the pool's egress is ['example.org'] now"}
    assert gone.count() == 2
    for row in Sandbox.objects.filter(state=State.READY):
        assert specs[row.name].allow == ("example.org",)


def test_a_lost_computer_says_what_the_kernel_counted(make_host: MakeHost) -> None:
    host = _counts(make_host(most=1))
    steps(host)
    lease = leases.acquire(owner=None, purpose="agent", idempotency_key="k")
    FakeProvider().kill(Sandbox.objects.get().as_handle())
    steps(host)
    gone = Sandbox.objects.get(state=State.GONE)
    assert gone.cause.endswith("; 2 processes were ended for memory; was not let to evil.test:443")
    assert AuditEvent.objects.filter(kind="sandbox.limited", sandbox=gone.name).count() == 1
    assert Lease.objects.get(pk=lease.pk).state == Lease.State.LOST
    assert "processes were ended for memory" in fleet.failures()[0].cause


def test_one_that_is_used_again_says_so_on_the_trail(make_host: MakeHost) -> None:
    host = _counts(make_host(most=1))
    steps(host)
    lease = leases.acquire(owner=None, purpose="agent", idempotency_key="k")
    leases.release(lease, reason="done")
    steps(host)
    row = Sandbox.objects.get()
    assert (row.state, row.cause) == (State.READY, "")
    event = AuditEvent.objects.get(kind="sandbox.limited", sandbox=row.name)
    assert "ended for memory" in event.detail["ran_into"]


def test_what_a_computer_chose_is_bounded_and_shown_as_text() -> None:
    places = [{"host": "\x1b[2J" + "a" * 500, "port": 1}] * 5
    named = limits.ran_into(Counting(places), Handle("fake", "one", "boot"))
    assert len(named) == 2
    assert named[1].endswith(" and 2 more")
    assert named[1].isprintable()
    assert len(named[1]) < 300


def test_the_same_limits_are_noted_once_where_ending_is_tried_again() -> None:
    row = make_row(state=State.DESTROYING, cause="not needed")
    for _ in range(2):
        pool.note_limits(row, ran_into=["3 new processes were refused"])
    row.refresh_from_db()
    assert row.cause == "not needed; 3 new processes were refused"
    assert AuditEvent.objects.filter(kind="sandbox.limited").count() == 1
