"""Whom a gateway lets in, and who may stay: asked of the rows, denied by default."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F
from django.utils import timezone

from sandbox.gateway.tokens import BadToken, Claims, Used
from sandbox.gateway.wire import Preamble, Refusal, port_of
from sandbox.models import Lease

_FOR_ANOTHER = "the token is for another computer, service or epoch"


@dataclass(frozen=True, slots=True)
class Admitted:
    """A service that a caller may use: `path` is its unix socket, `port` one behind the guest's."""

    lease: int
    sandbox: str
    service: str
    epoch: int
    path: str
    port: int | None


@dataclass(frozen=True, slots=True)
class Denied:
    """Why a caller is not let in; the reason is for the caller to read."""

    code: Refusal
    reason: str


def claims_of(preamble: Preamble, used: Used) -> Claims | Denied:
    """Use the token up and say what it is for; asks no row."""
    try:
        claims = used.redeem(preamble.token)
    except BadToken as error:
        return Denied(Refusal.TOKEN, str(error))
    asked = (preamble.sandbox, preamble.service, preamble.epoch)
    if asked != (claims.sandbox, claims.service, claims.epoch):
        return Denied(Refusal.TOKEN, _FOR_ANOTHER)
    if claims.service != "rfb" and claims.mode != "control":
        return Denied(Refusal.FORBIDDEN, "whoever may only watch gets nothing but the screen")
    return claims


def admit(claims: Claims, *, host: str) -> Admitted | Denied:
    """Look at the rows: only an active lease of a computer on `host` is let in."""
    lease = Lease.objects.select_related("sandbox").filter(pk=claims.lease).first()
    if lease is None or lease.sandbox.name != claims.sandbox:
        return Denied(Refusal.TOKEN, _FOR_ANOTHER)
    if lease.sandbox.host != host:
        return Denied(Refusal.UNKNOWN, f"{claims.sandbox} is not on {host}")
    if lease.pk not in standing([lease.pk]) or lease.epoch != claims.epoch:
        return Denied(Refusal.STALE, f"lease {lease.pk} of {claims.sandbox} is over")
    handle = lease.sandbox.as_handle()
    path = handle.rfb_socket if claims.service == "rfb" else handle.guest_socket
    if not path:
        what = f"a {handle.provider} computer has no {claims.service} socket"
        return Denied(Refusal.UNKNOWN, f"{claims.sandbox}: {what}")
    return Admitted(
        lease=lease.pk,
        sandbox=claims.sandbox,
        service=claims.service,
        epoch=claims.epoch,
        path=path,
        port=port_of(claims.service),
    )


def standing(leases: Iterable[int]) -> set[int]:
    """Return which of these leases are active, not expired, and still own their computer."""
    wanted = list(leases)
    if not wanted:
        return set()
    held = Lease.objects.filter(
        pk__in=wanted,
        state=Lease.State.ACTIVE,
        expires_at__gt=timezone.now(),
        sandbox__epoch=F("epoch"),
    )
    return set(held.values_list("pk", flat=True))
