"""The canary uses the public verbs, leaves nothing behind, and says what failed and where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from sandbox import canary, jobs
from sandbox.models import AuditEvent, Lease, Pool, Sandbox
from sandbox.provider import ActionFailed, Frame
from sandbox.providers import fake
from tests.sandbox.inline import MakeHost, make_host, make_pool, steps

__all__ = ["make_host"]


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "WAIT_S", 0.0)


def _event(kind: str) -> AuditEvent:
    return AuditEvent.objects.get(kind=kind)


def test_a_well_pool_is_used_and_given_back(make_host: MakeHost) -> None:
    steps(make_host())
    jobs.canary()
    assert _event("canary.well").detail["pool"] == Pool.DEFAULT
    assert Lease.objects.get().state == Lease.State.RELEASED
    assert Sandbox.objects.get().state == Sandbox.State.RESETTING


def test_each_pool_is_tried_and_a_paused_one_is_left_alone(make_host: MakeHost) -> None:
    host = make_host()
    make_pool("second", width=640, height=480)
    make_pool("paused", paused=True)
    steps(host)
    assert canary.run_all() == []
    assert {e.detail["pool"] for e in AuditEvent.objects.filter(kind="canary.well")} == {
        Pool.DEFAULT, "second",
    }  # fmt: skip


def test_an_empty_pool_fails_with_its_cause(db: None) -> None:
    pool = make_pool()
    assert not canary.run(pool)
    found = _event("canary.failed").detail
    assert found["stage"] == "lease" and "NoCapacity" in found["cause"]


def test_a_wrong_screen_fails_and_the_lease_is_given_back(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps(make_host())
    real = fake._Computer.observe

    def lies(self: Any, **options: Any) -> Frame:
        return replace(real(self, **options), png=b"GIF89a")

    monkeypatch.setattr(fake._Computer, "observe", lies)
    assert canary.run_all() == [Pool.DEFAULT]
    found = _event("canary.failed").detail
    assert found["stage"] == "screen" and "no PNG" in found["cause"]
    assert canary.held(Pool.objects.get()) == 0


def test_a_computer_without_a_shell_is_fine(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(self: Any, *_: object, **__: object) -> None:
        raise ActionFailed("a page has no shell")

    steps(make_host())
    monkeypatch.setattr(fake._Computer, "shell", none)
    assert canary.run_all() == []


def test_a_canary_lease_that_is_left_is_a_leak(make_host: MakeHost) -> None:
    host = make_host(warm=2)
    steps(host)
    left = Sandbox.objects.order_by("pk")[0]
    soon = timezone.now() + canary.TTL
    Sandbox.objects.filter(pk=left.pk).update(state=Sandbox.State.LEASED)
    Lease.objects.create(
        sandbox=left, epoch=left.epoch, idempotency_key="canary-old", expires_at=soon,
        hard_expires_at=soon,
    )  # fmt: skip
    assert canary.run_all() == [Pool.DEFAULT]
    assert "1 canary leases" in _event("canary.failed").detail["cause"]
