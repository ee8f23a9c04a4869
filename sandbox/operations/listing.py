"""Computers and leases as records for programs and as a table for people."""

from __future__ import annotations

from typing import Any

from sandbox.models import Lease, Sandbox

_COLUMNS = ("name", "pool", "provider", "host", "state", "lease", "owner", "cause")
_WIDEST = 60


def sandboxes(*, pool: str | None = None, gone: bool = False) -> list[dict[str, Any]]:
    """Return one record for each computer: its row, its active lease, and why it is as it is."""
    rows = Sandbox.objects.select_related("pool").order_by("name")
    if pool is not None:
        rows = rows.filter(pool__name=pool)
    if not gone:
        rows = rows.exclude(state=Sandbox.State.GONE)
    active = Lease.objects.filter(state=Lease.State.ACTIVE).select_related("owner")
    holders = {lease.sandbox_id: lease for lease in active}
    return [_record(row, holders.get(row.pk)) for row in rows]


def lease_record(lease: Lease) -> dict[str, Any]:
    """Return what a program needs of a lease."""
    return {
        "lease": lease.pk,
        "sandbox": lease.sandbox.name,
        "epoch": lease.epoch,
        "state": lease.state,
        "expires_at": lease.expires_at.isoformat(),
    }


def table(records: list[dict[str, Any]]) -> str:
    """Return `records` in columns as wide as they need; control characters are shown as '?'."""
    if not records:
        return "no computers: is a sandbox host running? (manage.py sandbox_host)"
    rows = [list(_COLUMNS)]
    rows += [[_cell(record[column]) for column in _COLUMNS] for record in records]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _record(row: Sandbox, lease: Lease | None) -> dict[str, Any]:
    return {
        "name": row.name,
        "pool": row.pool.name if row.pool else "",
        "provider": row.provider,
        "host": row.host,
        "state": row.state,
        "cause": row.cause,
        "epoch": row.epoch,
        "lease": lease.pk if lease else None,
        "owner": lease.owner.username if lease and lease.owner else "",
        "expires_at": lease.expires_at.isoformat() if lease else None,
    }


def _cell(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split())
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
