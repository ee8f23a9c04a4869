"""Which way leads to a leased computer, by its rows."""

from __future__ import annotations

from functools import partial

from django.conf import settings

from sandbox.dial import Gateway
from sandbox.gateway.tokens import Claims, sign
from sandbox.models import Host, Lease


def gateway_to(lease: Lease, *, mode: str = "control") -> Gateway | None:
    """Return the way to the lease's computer; None if it is on this host, by its unix socket.

    A host that gives no address has no gateway: its computers are taken to be on this machine.
    """
    sandbox = lease.sandbox
    if sandbox.host == settings.SANDBOX_HOST:
        return None
    host = Host.objects.filter(name=sandbox.host).exclude(address="").first()
    if host is None:
        return None
    return Gateway(
        host=host.name,
        address=host.address,
        folder=settings.SANDBOX_TLS,
        sandbox=sandbox.name,
        epoch=lease.epoch,
        sign=partial(_token, lease.pk, sandbox.name, lease.epoch, mode),
    )


def _token(lease: int, sandbox: str, epoch: int, mode: str, service: str) -> str:
    return sign(Claims(lease=lease, sandbox=sandbox, epoch=epoch, service=service, mode=mode))
