"""A sandbox host whose work is done at once, in the test's own thread and transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sandbox import pool
from sandbox.host import HostProcess, hosts, orphans, process
from sandbox.models import Host, Pool, Sandbox
from sandbox.provider import Handle
from sandbox.providers.fake import FakeProvider

MakeHost = Callable[..., HostProcess]


class Inline:
    """An executor whose futures are done when they are returned."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, work: Callable[..., Any], *args: object) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args))
        except BaseException as error:
            done.set_exception(error)
        return done

    def shutdown(self, **_: object) -> None: ...


class _Connection:
    """Closing the test's connection would end its transaction."""

    def close(self) -> None: ...


@pytest.fixture
def make_host(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeHost]:
    """Make hosts of fake computers; each has joined, and the default pool is what it says."""
    monkeypatch.setattr(process, "ThreadPoolExecutor", Inline)
    monkeypatch.setattr(process, "connection", _Connection())
    for name in ("PROBE_READY_S", "PROBE_LEASED_S", "SYNC_EVERY_S", "END_AGAIN_S", "REPLENISH_S"):
        monkeypatch.setattr(process, name, 0.0)
    monkeypatch.setattr(orphans, "SYNC_EVERY_S", 0.0)

    def make(
        name: str = "here", *, warm: int = 1, most: int = 4, slots: int | None = None
    ) -> HostProcess:
        host = HostProcess(name=name, providers=["fake"], slots=most if slots is None else slots)
        host.join()
        pool.configure(provider="fake", warm=warm, most=most)
        return host

    yield make
    for handle in FakeProvider().running():
        FakeProvider().stop(handle)


def steps(host: HostProcess, count: int = 6) -> None:
    """Step until all that follows from the rows as they are has been done."""
    for _ in range(count):
        host.step()


def count(state: str) -> int:
    return Sandbox.objects.filter(state=state).count()


def make_row(name: str = "one", **values: Any) -> Sandbox:
    """Return a computer's row; `boot` gives it a handle."""
    if boot := values.pop("boot", ""):
        values["handle"] = Sandbox.handle_record(Handle("fake", name, boot))
    return Sandbox.objects.create(**{"name": name, "provider": "fake", "host": "here", **values})


def make_pool(name: str = "fakes", **values: Any) -> Pool:
    return Pool.objects.create(name=name, provider="fake", **values)


def join(name: str, *, slots: int = 4, **values: Any) -> Host:
    """Return the row of a host of which no process runs."""
    row = hosts.join(name=name, providers=["fake"], slots=slots, memory_mb=0, cpus=1, versions={})
    # No process beats for it, and a test may take long.
    seen = {"last_seen": timezone.now() + timedelta(hours=1)}
    Host.objects.filter(pk=row.pk).update(**{**seen, **values})
    row.refresh_from_db()
    return row
