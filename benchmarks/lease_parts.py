"""What the benchmark of leases, and the test of the claim's plan, are made of: a simulated fleet."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from sandbox.leasing import claiming
from sandbox.leasing.claiming import Seen, Wish
from sandbox.models import Host, Lease, LeaseRequest, Pool, Sandbox

HOSTS = 100
_PARAMETER = re.compile(r"%\(\w+\)s")


def fill(pool: Pool, count: int, *, leased_each: int = 0) -> None:
    """Add `count` ready computers on HOSTS hosts; every `leased_each`-th is leased."""
    Host.objects.bulk_create(
        (Host(name=f"host-{number}") for number in range(HOSTS)), ignore_conflicts=True
    )
    have, now = Sandbox.objects.count(), timezone.now()
    Sandbox.objects.bulk_create(
        (
            Sandbox(
                name=f"desk-{number}",
                pool=pool,
                provider="fake",
                host=f"host-{number % HOSTS}",
                state=Sandbox.State.LEASED
                if leased_each and number % leased_each == 0
                else Sandbox.State.READY,
                ready_at=now - timedelta(milliseconds=number),
                probed_at=now,
            )
            for number in range(have, have + count)
        ),
        batch_size=1000,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sandbox_sandbox, sandbox_host, sandbox_leaserequest")


def plan(pool: Pool, *, request: int | None = None, at_once: bool = False) -> dict[str, Any]:
    """Run the claim (at once, of a newcomer, or of a waiting request), tell what it did, and undo it.

    The plan is the one that is made once and fits all values, as connections keep it.
    """
    hour, now = timedelta(hours=1), timezone.now()
    wish = Wish(None, Lease.Purpose.AGENT, "planned", pool.name, hour, hour)
    state = LeaseRequest.State.WAITING if request else None
    seen = Seen(None, request, state, None, pool.pk, None, None, None)
    statement, values = (
        claiming.statement_at_once(wish, now=now)
        if at_once
        else claiming.statement(wish, seen, now=now, pool=pool.pk)
    )
    numbers = {f"%({name})s": f"${number}" for number, name in enumerate(values, 1)}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"PREPARE planned AS {_PARAMETER.sub(lambda m: numbers[m[0]], statement)}")
        places = ", ".join(["%s"] * len(values))
        explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
        cursor.execute(f"{explain} EXECUTE planned ({places})", list(values.values()))
        found = cursor.fetchone()[0]
        cursor.execute("DEALLOCATE planned")
        transaction.set_rollback(True)
    return dict((json.loads(found) if isinstance(found, str) else found)[0])


def nodes(planned: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every node of a plan."""
    todo, done = [planned["Plan"]], []
    while todo:
        node = todo.pop()
        todo += node.get("Plans", [])
        done.append(node)
    return done


def reads(planned: dict[str, Any], table: str) -> float:
    """Return how many rows of `table` were looked at, those that were left out included."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(planned)
        if node.get("Relation Name") == table and node["Node Type"] != "ModifyTable"
    )
