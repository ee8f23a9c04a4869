"""Which host starts which computer."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from sandbox import pool
from sandbox.models import Host, Sandbox
from tests.sandbox.inline import join, make_pool, make_row

pytestmark = pytest.mark.django_db


def _wanted(count: int, *, age_s: float = 0.0) -> list[Sandbox]:
    rules = make_pool(f"p{Sandbox.objects.count()}", memory_mb=1000)
    rows = [make_row(f"w{rules.pk}-{n}", host="", pool=rules) for n in range(count)]
    Sandbox.objects.filter(host="").update(created_at=timezone.now() - timedelta(seconds=age_s))
    return rows


def test_the_least_loaded_host_takes_it() -> None:
    full, empty = join("full"), join("empty")
    make_row("old", host="full", state=Sandbox.State.LEASED)
    _wanted(1)
    assert pool.take(full) is None
    taken = pool.take(empty)
    assert taken is not None and taken.host == "empty" and taken.state_deadline is not None


def test_a_bigger_host_takes_more() -> None:
    hosts = [join("big", slots=8), join("small", slots=2)]
    _wanted(5)
    for host in hosts:
        host.starting_limit = 9
        host.save()
    took = True
    while took:
        took = sum(pool.take(host) is not None for host in hosts) > 0
    assert Counter(Sandbox.objects.values_list("host", flat=True)) == {"big": 4, "small": 1}


def test_a_row_that_the_better_host_left_is_taken() -> None:
    busy = join("busy")
    join("idle")
    make_row("old", host="busy", state=Sandbox.State.LEASED)
    _wanted(1, age_s=5)
    assert pool.take(busy) is not None


@pytest.mark.parametrize(
    "values",
    [
        {"state": Host.State.DRAINING},
        {"state": Host.State.DOWN},
        {"slots": 0},
        {"memory_mb": 900},
        {"starting_limit": 0},
        {"last_seen": timezone.now() - timedelta(minutes=1)},
    ],
)
def test_a_host_that_can_not_start_takes_nothing_and_is_no_rival(values: dict[str, object]) -> None:
    unable, able = join("unable", **values), join("able")
    make_row("old", host="able", state=Sandbox.State.LEASED)
    _wanted(1, age_s=5)
    assert pool.take(unable) is None
    assert pool.take(able) is not None


def test_a_host_takes_only_what_its_providers_can_start() -> None:
    _wanted(1)
    other = join("other", providers=["qemu"])
    assert pool.take(other) is None


def test_no_more_start_at_once_than_the_host_allows() -> None:
    host = join("one", slots=9)
    _wanted(5)
    taken = [pool.take(host) for _ in range(5)]
    assert sum(row is not None for row in taken) == host.starting_limit == 3


def test_room_counts_slots_and_memory_of_hosts_that_are_up() -> None:
    rules = make_pool(memory_mb=1000)
    join("a", slots=4, memory_mb=2500)
    join("b", slots=3)
    join("c", slots=9, state=Host.State.DRAINING)
    make_row("old", host="b", state=Sandbox.State.FAILED)
    assert pool.room(rules) == 2 + 2


@pytest.mark.django_db(transaction=True)
def test_hosts_at_once_never_take_the_same_row() -> None:
    hosts = [join(f"h{n}", slots=50, starting_limit=50) for n in range(4)]
    _wanted(12, age_s=5)
    taken: list[str] = []
    start = threading.Barrier(4)

    def body(host: Host) -> None:
        start.wait(60)
        while row := pool.take(host):
            taken.append(row.name)
        connection.close()

    threads = [threading.Thread(target=body, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(taken) == len(set(taken)) <= 12
    for host in hosts:  # what was locked when somebody looked
        while pool.take(host):
            pass
    assert not Sandbox.objects.filter(host="").exists()
