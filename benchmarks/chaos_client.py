"""A caller of leases that `benchmarks.chaos` kills: `python -m benchmarks.chaos_client NAME`.

Each action appends its id to a file of the guest, once; every third is sent again with the same id. Prints
one JSON line per lease that it could finish: what it did, and what it found that must not be.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import uuid
from collections import Counter
from datetime import timedelta
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

ACTIONS = 12
RETRY_S = 3.0
TTL = timedelta(seconds=20)
COUNTER = "actions.txt"


def main(name: str) -> None:
    import django

    django.setup()
    from django.db import Error, connection

    key = ""
    while True:
        found: dict[str, Any] = {"client": name, "at": time.time()}
        # Who waits asks again with the same key: a new one would be a new place in the queue.
        key = key or f"{name}-{uuid.uuid4().hex}"
        try:
            if _lease(key, found):
                key = ""
        except Error as error:
            found["ended"] = f"database: {type(error).__name__}"
            connection.close()
        print(json.dumps(found), flush=True)


def _lease(key: str, found: dict[str, Any]) -> bool:
    """Lease, work, give back; False if there was no computer yet."""
    from sandbox.leasing import leases, queue
    from sandbox.provider import SandboxError

    try:
        lease = leases.acquire(
            owner=None, purpose="agent", idempotency_key=key, ttl=TTL, wait_s=5
        )  # fmt: skip
    except queue.Refused as error:
        found["ended"] = f"{type(error).__name__}: {error}"
        return True
    except SandboxError as error:
        found["ended"] = f"{type(error).__name__}: {error}"
        return False
    if lease.state != lease.State.ACTIVE:
        return True  # the database went away after it was granted
    found |= {"lease": lease.pk, "sandbox": lease.sandbox.name, "epoch": lease.epoch}
    try:
        desktop = leases.connect(lease)
    except SandboxError as error:
        found["ended"] = f"{type(error).__name__}: {error}"
        leases.release(lease, reason=f"chaos: {error}")
        return True
    sure, sent = _work(lease, desktop, found)
    leases.release(lease, reason="chaos: done")
    _check(desktop, sure, sent, found)
    _act_late(desktop, lease.epoch, found)
    desktop.close()
    return True


def _work(lease: Any, desktop: Any, found: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Do the actions; return the ids that were answered, and all that were sent."""
    from sandbox.leasing import leases
    from sandbox.provider import SandboxError

    sure: set[str] = set()
    sent: set[str] = set()
    try:
        for number in range(ACTIONS):
            action = f"{lease.pk}.{lease.epoch}.{number}"
            for _ in range(2 if number % 3 == 0 else 1):
                sent.add(action)
                _act(desktop, lease.epoch, action)
                sure.add(action)
            leases.renew(lease, ttl=TTL)
            time.sleep(random.uniform(0, 0.3))
        found["seen"] = Counter(desktop.read_file(COUNTER).decode().split())
    except SandboxError as error:
        found["ended"] = f"{type(error).__name__}: {error}"
    return sure, sent


def _act(desktop: Any, epoch: int, action: str) -> None:
    """Send an action until it is answered, as a careful caller does."""
    from sandbox.provider import DesktopLost

    deadline = time.monotonic() + RETRY_S
    while True:
        try:
            result = desktop.shell(
                f"echo {action} >> {COUNTER}", epoch=epoch, action_id=action, timeout_ms=5000
            )
            assert result.exit_code == 0, result
            return
        except DesktopLost:
            if time.monotonic() > deadline:
                raise


def _check(desktop: Any, sure: set[str], sent: set[str], found: dict[str, Any]) -> None:
    seen = found.pop("seen", None)
    found["actions"] = len(sure)
    if seen is None:
        return
    found["doubled"] = sorted(action for action, times in seen.items() if times > 1)
    found["foreign"] = sorted(set(seen) - sent)
    found["missing"] = sorted(sure - set(seen))


def _act_late(desktop: Any, epoch: int, found: dict[str, Any]) -> None:
    """Act after the release has returned: nothing of ours may be done any more."""
    from sandbox.provider import SandboxError

    try:
        desktop.shell("echo late >> late.txt", epoch=epoch, action_id=uuid.uuid4().hex)
    except SandboxError as error:
        found["late"] = type(error).__name__
    else:
        found["late"] = "acted"


if __name__ == "__main__":
    main(sys.argv[1])
