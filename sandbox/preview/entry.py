"""Who may see a service: a one-time ticket from the product becomes a cookie of the service's host.

The cookie names the ticket's row, whose lease, login and account are looked at again and again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from sandbox import access
from sandbox.dial import Gateway
from sandbox.gateway.routes import gateway_to
from sandbox.leasing.leases import LeaseOver
from sandbox.models import Lease, StreamTicket
from sandbox.preview.names import Place
from sandbox.screen import tickets
from sandbox.screen.gate import Grant, Refused

MODE = "preview"
"""What such a ticket's row says; the relay opens no screen for it."""

_SALT = "sandbox.preview.cookie"
_MAX_AGE_S = 12 * 3600


@dataclass(frozen=True, slots=True)
class Pass:
    """What a cookie lets its holder reach."""

    ticket: int
    epoch: int
    place: Place
    guest_socket: str
    gateway: Gateway | None


def issue(*, user: User, lease: Lease, session_key: str) -> str:
    """Return a ticket to the services of `lease`, for whoever may control it.

    Raises PermissionDenied, LeaseOver.
    """
    if not access.may(user, lease, mode=access.Mode.CONTROL):
        raise PermissionDenied("only the owner of the lease may open what its computer serves")
    now = timezone.now()
    if lease.state != Lease.State.ACTIVE or lease.expires_at <= now:
        raise LeaseOver(f"lease {lease.pk} is over: its computer serves nothing any more")
    token = secrets.token_urlsafe(32)
    StreamTicket.objects.create(
        digest=tickets.digest(token),
        user=user,
        lease=lease,
        mode=MODE,
        session_key=session_key,
        expires_at=now + tickets.TTL,
    )
    return token


def redeem(token: str, place: Place) -> str | None:
    """Use the ticket up and return the cookie for `place`; None for a ticket that does not fit."""
    now = timezone.now()
    fresh = StreamTicket.objects.filter(
        digest=tickets.digest(token),
        mode=MODE,
        lease_id=place.lease,
        used_at=None,
        expires_at__gt=now,
    )
    # One UPDATE decides between two that come at once.
    if not fresh.update(used_at=now):
        return None
    ticket = StreamTicket.objects.get(digest=tickets.digest(token))
    return signing.dumps([ticket.pk, place.lease, place.port], salt=_SALT)


def look(cookie: str, place: Place) -> Pass | None:
    """Return what a cookie opens now; None once its lease, login or account has ended."""
    try:
        pk, *there = signing.loads(cookie, salt=_SALT, max_age=_MAX_AGE_S)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    if there != [place.lease, place.port]:
        return None
    ticket = StreamTicket.objects.select_related("lease__sandbox").filter(pk=pk).first()
    if ticket is None:
        return None
    lease = ticket.lease
    grant = Grant(
        lease_id=lease.pk,
        epoch=lease.epoch,
        user_id=ticket.user_id,
        mode="control",
        rfb_socket="",
        rfb_password="",
        session_key=ticket.session_key,
    )
    if isinstance(tickets.look(grant), Refused):
        return None
    return Pass(
        ticket=ticket.pk,
        epoch=lease.epoch,
        place=place,
        guest_socket=lease.sandbox.as_handle().guest_socket,
        gateway=gateway_to(lease),
    )
