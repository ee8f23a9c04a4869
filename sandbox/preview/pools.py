"""Connections to what a computer serves: its guest's socket or its host's gateway, then the port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore

from sandbox import dial
from sandbox.preview.entry import Pass

MOST = 16
"""Connections to one service at once; a browser opens six, and one for each WebSocket."""

KEPT_S = 30.0
_POOLS = 64


class Ports(httpcore.AsyncNetworkBackend):
    """Opens every connection at one computer's port, whatever host is asked for."""

    def __init__(self, holder: Pass) -> None:
        self._holder = holder

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raises DesktopLost, StaleLease, PortClosed, httpcore's errors."""
        holder = self._holder
        return await dial.port(
            holder.guest_socket, holder.place.port, holder.epoch, holder.gateway, timeout=timeout
        )


class Pools:
    """Keeps the connections to the services that were asked for last."""

    def __init__(self) -> None:
        self._pools: dict[int, httpcore.AsyncConnectionPool] = {}

    async def of(self, holder: Pass) -> httpcore.AsyncConnectionPool:
        """Return the pool of a pass; the one that was not used for longest makes way."""
        pool = self._pools.pop(holder.ticket, None) or httpcore.AsyncConnectionPool(
            max_connections=MOST, keepalive_expiry=KEPT_S, network_backend=Ports(holder)
        )
        self._pools[holder.ticket] = pool
        if len(self._pools) > _POOLS:
            oldest = self._pools.pop(next(iter(self._pools)))
            await oldest.aclose()
        return pool

    async def drop(self, ticket: int) -> None:
        """Close what a pass that has ended still has open."""
        pool = self._pools.pop(ticket, None)
        if pool is not None:
            await pool.aclose()
