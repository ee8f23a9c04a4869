"""The sandbox host as a process, with real desktops: killed, replaced, and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from sandbox import pool
from sandbox.leasing import leases
from sandbox.models import Lease, Sandbox
from tests.sandbox.desktops import needs_local
from trajectory import Move

pytestmark = [pytest.mark.django_db(transaction=True), needs_local]
Start = Callable[..., "subprocess.Popen[str]"]
_MANAGE = Path(__file__).parents[2] / "manage.py"


@pytest.fixture
def start(child_environment: dict[str, str]) -> Iterator[Start]:
    hosts: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        argv = [sys.executable, str(_MANAGE), "sandbox_host", "--name", "here", *options]
        hosts.append(
            subprocess.Popen(
                argv,
                env=child_environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        return hosts[-1]

    yield start
    for host in hosts:
        host.kill()
        host.wait()
    for handle in pool.provider("local").running():
        pool.provider("local").stop(handle)


def _ready(*, other_than: str = "") -> Sandbox:
    deadline = time.monotonic() + 40
    while True:
        rows = Sandbox.objects.filter(state=Sandbox.State.READY)
        for row in rows:
            if row.handle["boot_id"] != other_than:
                return row
        assert time.monotonic() < deadline, list(Sandbox.objects.values("name", "state", "cause"))
        time.sleep(0.05)


def test_a_desktop_outlives_its_host_and_not_its_own_death(start: Start) -> None:
    first = start()
    row = _ready()
    lease = leases.acquire(owner=None, purpose="human", idempotency_key="k")
    desktop = leases.connect(lease)
    first.kill()
    first.wait()

    second = start("--stop-desktops-on-exit")
    spare = _ready()
    desktop.perform(Move(3, 3), epoch=lease.epoch, action_id="after")
    lease.refresh_from_db()
    assert lease.state == Lease.State.ACTIVE

    os.kill(row.as_handle().pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while lease.state == Lease.State.ACTIVE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        lease.refresh_from_db()
    assert lease.state == Lease.State.LOST
    assert lease.release_reason.startswith("lost: its process is gone: ")  # and what its log said

    leases.release(leases.acquire(owner=None, purpose="human", idempotency_key="l"), reason="done")
    again = _ready(other_than=spare.handle["boot_id"])
    assert again.epoch == 0 or again.epoch > spare.epoch

    second.send_signal(signal.SIGTERM)
    out, _ = second.communicate(timeout=30)
    assert second.returncode == 0, out
    assert pool.provider("local").running() == []
    assert not list((settings.STATE_DIR / "sandboxes" / "local").iterdir())
    assert set(Sandbox.objects.values_list("state", flat=True)) == {Sandbox.State.GONE}


def test_one_host_of_a_name(start: Start) -> None:
    start()
    _ready()
    out, _ = start().communicate(timeout=60)
    assert "a sandbox host called here runs already" in out
