"""Rows of computers that exist only as rows, and callers who ask for them at the same time."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from sandbox.leasing import leases
from sandbox.models import Lease, Sandbox
from sandbox.provider import Handle


def make_sandbox(
    name: str = "desk-1",
    *,
    age_s: float = 0,
    state: str = Sandbox.State.READY,
    **fields: Any,
) -> Sandbox:
    handle = Sandbox.handle_record(Handle(provider="fake", name=name, boot_id=f"boot-{name}"))
    return Sandbox.objects.create(
        name=name,
        provider="fake",
        **{"host": "here", "handle": handle, **fields},
        state=state,
        ready_at=timezone.now() - timedelta(seconds=age_s),
    )


def acquire(owner: Any, key: str = "k", **kwargs: Any) -> Lease:
    purpose = kwargs.pop("purpose", Lease.Purpose.HUMAN)
    return leases.acquire(owner=owner, purpose=purpose, idempotency_key=key, **kwargs)


def make_ready(sandbox: Sandbox) -> None:
    """Do what a host does after a reset; whoever held it holds it no more."""
    Lease.objects.filter(sandbox=sandbox, state="active").update(
        state=Lease.State.RELEASED, released_at=timezone.now()
    )
    Sandbox.objects.filter(pk=sandbox.pk).update(
        state=Sandbox.State.READY, ready_at=timezone.now(), probed_at=timezone.now()
    )


def at_once(count: int, work: Callable[[int], object]) -> list[Any]:
    """Run `work` in `count` threads that start together; return results and exceptions."""
    barrier, results = threading.Barrier(count), [None] * count

    def body(number: int) -> None:
        try:
            barrier.wait(60)
            results[number] = work(number)
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results
