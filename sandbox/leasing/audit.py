"""What happened to computers: the only code that adds an AuditEvent."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from sandbox.models import AuditEvent, Lease

PLATFORM = "platform"


def actor(user: User | None) -> str:
    """Return how an event names who acted: by number, so that no name outlives its account."""
    return f"user:{user.pk}" if user is not None else PLATFORM


def record(
    kind: str,
    *,
    by: str,
    lease: Lease | None = None,
    sandbox: str = "",
    host: str = "",
    **detail: Any,
) -> None:
    """Add an event to the trail, in the caller's transaction; it can't be changed afterwards."""
    AuditEvent.objects.create(
        kind=kind,
        actor=by,
        host=host or (lease.sandbox.host if lease else ""),
        sandbox=sandbox or (lease.sandbox.name if lease else ""),
        lease=lease.pk if lease else None,
        epoch=lease.epoch if lease else None,
        detail=detail,
    )
