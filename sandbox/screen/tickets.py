"""One-time tickets to a screen: issued over a signed-in page, used up by the relay.

The token travels in a WebSocket subprotocol, never in a URL; only its sha256 is kept, and nothing
logs it.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from importlib import import_module

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from sandbox import access
from sandbox.gateway.routes import gateway_to
from sandbox.leasing.leases import LeaseOver
from sandbox.models import Lease, StreamTicket
from sandbox.screen.gate import Close, Grant, Refused, Standing

TTL = timedelta(seconds=30)


def issue(*, user: User, lease: Lease, mode: str, session_key: str = "") -> str:
    """Return a token that opens the screen of `lease` once, within TTL, in `mode`.

    Bound to the user, the lease with its epoch, the mode and the web login; raises
    PermissionDenied, LeaseOver.
    """
    if not access.may(user, lease, mode=mode):
        raise PermissionDenied(f"{user} may not open this screen to {mode}")
    now = timezone.now()
    if lease.state != Lease.State.ACTIVE or lease.expires_at <= now:
        raise LeaseOver(f"lease {lease.pk} is over: there is no screen to open")
    token = secrets.token_urlsafe(32)
    StreamTicket.objects.create(
        digest=digest(token),
        user=user,
        lease=lease,
        mode=mode,
        session_key=session_key,
        expires_at=now + TTL,
    )
    return token


def redeem(token: str) -> Grant | Refused:
    """Use the ticket up and return what it opens; whoever comes second is refused."""
    now = timezone.now()
    name = digest(token)
    # One UPDATE decides: of two that come at once, the database lets one change the row.
    won = StreamTicket.objects.filter(digest=name, used_at=None, expires_at__gt=now).update(
        used_at=now
    )
    if not won:
        return Refused(Close.NO_TICKET, "no such ticket, or it is used up or too old")
    ticket = StreamTicket.objects.select_related("lease__sandbox").get(digest=name)
    handle = ticket.lease.sandbox.as_handle()
    grant = Grant(
        lease_id=ticket.lease_id,
        epoch=ticket.lease.epoch,
        user_id=ticket.user_id,
        mode=ticket.mode,
        rfb_socket=handle.rfb_socket,
        rfb_password=handle.rfb_password,
        session_key=ticket.session_key,
        gateway=gateway_to(ticket.lease, mode=ticket.mode),
    )
    standing = look(grant)
    return standing if isinstance(standing, Refused) else grant


def look(grant: Grant) -> Standing | Refused:
    """Say whether what a ticket opened may stay open, and whether its owner may type now."""
    lease = Lease.objects.select_related("sandbox").filter(pk=grant.lease_id).first()
    if (
        lease is None
        or lease.state != Lease.State.ACTIVE
        or not lease.epoch == grant.epoch == lease.sandbox.epoch
    ):
        return Refused(Close.LEASE_OVER, "the lease is over")
    if lease.expires_at <= timezone.now():
        return Refused(Close.LEASE_OVER, "the lease has expired")
    user = User.objects.filter(pk=grant.user_id, is_active=True).first()
    if user is None or not access.may(user, lease, mode=grant.mode):
        return Refused(Close.FORBIDDEN, "this account may not see this screen")
    if grant.session_key and not _signed_in(grant.session_key):
        return Refused(Close.FORBIDDEN, "signed out")
    return Standing(human_control=lease.human_control)


def prune(*, older_than: timedelta = timedelta(days=1)) -> int:
    """Delete tickets that nobody can use any more; return how many."""
    return StreamTicket.objects.filter(expires_at__lt=timezone.now() - older_than).delete()[0]


def digest(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _signed_in(session_key: str) -> bool:
    store = import_module(settings.SESSION_ENGINE).SessionStore
    return bool(store().exists(session_key))
