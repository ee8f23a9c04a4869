"""The machines that carry computers: they join, beat, drain, leave, and are given up when silent.

The only code that changes a Host. A host that is silent keeps its computers, so its leases are lost
before anybody else could be told otherwise; when it comes back it ends what its rows have given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from sandbox import pool
from sandbox.leasing import audit, leases
from sandbox.models import Host, Lease, Sandbox
from sandbox.provider import SandboxError

BEAT_EVERY_S = 3.0
SILENT_AFTER = timedelta(seconds=30)

# Any constant of ours: it keeps this lock apart from other advisory locks of the database.
_LOCK_SPACE = 0x7A4D


class NameTaken(SandboxError):
    """Another process is the host of this name."""


class HostRemoved(SandboxError):
    """The host's row is gone: an administrator has removed it."""


def hold_name(name: str) -> None:
    """Be the one process that is host `name`, for as long as this database connection lasts.

    Two hosts of one name would end each other's computers. Raises NameTaken.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LOCK_SPACE, name])
        if not cursor.fetchone()[0]:
            raise NameTaken(f"a sandbox host called {name} runs already on this database")


def join(
    *,
    name: str,
    providers: Sequence[str],
    slots: int,
    memory_mb: int,
    cpus: float,
    versions: dict[str, str],
    address: str = "",
) -> Host:
    """Say what this host can carry, and where its gateway is; one that was draining goes on draining."""
    with transaction.atomic():
        host, _ = Host.objects.select_for_update().get_or_create(name=name)
        host.providers, host.slots, host.memory_mb = list(providers), slots, memory_mb
        host.cpus, host.versions, host.address = cpus, versions, address
        if host.state == Host.State.DOWN:
            host.state = Host.State.UP
        host.save(
            update_fields=[
                "providers", "slots", "memory_mb", "cpus", "versions", "state", "address",
            ]
        )  # fmt: skip
        _seen(host)
        host.refresh_from_db(fields=["last_seen"])
        _note("host.joined", host, slots=slots, memory_mb=memory_mb, providers=list(providers))
    return host


def beat(host: Host) -> Host:
    """Say that the host is there, and return its row as it is now.

    One that was given up comes back: what its rows have given up, it ends. Raises HostRemoved.
    """
    with transaction.atomic():
        _seen(host)
        back = Host.objects.filter(pk=host.pk, state=Host.State.DOWN).update(state=Host.State.UP)
        now = Host.objects.filter(pk=host.pk).first()
        if now is None:
            raise HostRemoved(f"host {host.name} has no row any more: start it again to join anew")
        if back:
            _note("host.returned", now)
    return now


def drain(host: Host, *, by: str) -> bool:
    """Let the host start nothing more: idle computers end, leases run on; False if it did so already."""
    return _turn(host, Host.State.UP, Host.State.DRAINING, "host.draining", by)


def undrain(host: Host, *, by: str) -> bool:
    """Let a draining host start computers again; False if it does."""
    return _turn(host, Host.State.DRAINING, Host.State.UP, "host.undrained", by)


def leave(host: Host) -> None:
    """Say that the host has ended, with its computers."""
    with transaction.atomic():
        Host.objects.filter(pk=host.pk).update(state=Host.State.DOWN)
        _note("host.left", host)


def give_up_silent() -> list[str]:
    """Give up the hosts that have not been seen for SILENT_AFTER, and all that ran there.

    Any number may run at once, and again after a kill: leases are lost, computers fail, each with the
    reason. Returns the names of the hosts that were given up now.
    """
    with transaction.atomic():
        silent = list(
            Host.objects.select_for_update(skip_locked=True, no_key=True)
            .exclude(state=Host.State.DOWN)
            .filter(last_seen__lt=Now() - SILENT_AFTER)
        )
        for host in silent:
            Host.objects.filter(pk=host.pk).update(state=Host.State.DOWN)
            _note("host.silent", host, last_seen=str(host.last_seen))
    _give_up_what_ran()
    return [host.name for host in silent]


def _seen(host: Host) -> None:
    """Note the time by the database's clock: those of the machines need not agree."""
    Host.objects.filter(pk=host.pk).update(last_seen=Now())


def _give_up_what_ran() -> None:
    """Fail what hosts that are down, or were removed, had; a host may be killed before it is done."""
    up = Host.objects.exclude(state=Host.State.DOWN).values("name")
    left = Sandbox.objects.exclude(state=Sandbox.State.GONE).exclude(host="").exclude(host__in=up)
    for sandbox in left.filter(state__in=pool.LIVE):
        _give_up(sandbox, f"host {sandbox.host} {_what_became_of(sandbox.host)}")
    # What is left of these the host ends as orphans, should it ever come back.
    for sandbox in left.filter(state__in=pool.ENDING, state_deadline__lt=timezone.now()):
        pool.mark_gone(sandbox)


def _what_became_of(name: str) -> str:
    host = Host.objects.filter(name=name).first()
    return f"was not seen since {host.last_seen:%H:%M:%S}" if host and host.last_seen else "is gone"


def _give_up(sandbox: Sandbox, cause: str) -> None:
    lease = sandbox.leases.filter(state=Lease.State.ACTIVE, epoch=sandbox.epoch).first()
    if lease is not None and sandbox.state == Sandbox.State.LEASED:
        leases.lose(lease, cause=cause, ending=Lease.Ending.HOST)
    else:
        pool.mark_failed(sandbox, cause=cause)


def _turn(host: Host, old: str, new: str, kind: str, by: str) -> bool:
    with transaction.atomic():
        changed = Host.objects.filter(pk=host.pk, state=old).update(state=new)
        if changed:
            _note(kind, host, actor=by)
    return bool(changed)


def _note(kind: str, host: Host, *, actor: str = "", **detail: Any) -> None:
    audit.record(kind, by=actor or f"host:{host.name}", host=host.name, **detail)
