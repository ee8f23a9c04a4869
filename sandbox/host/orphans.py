"""Computers that run without a row: ended, but only when that has been so for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from sandbox.leasing import audit
from sandbox.models import Sandbox
from sandbox.provider import Handle, Provider, SandboxError

log = logging.getLogger(__name__)

SYNC_EVERY_S = 10.0
_HELD = (Sandbox.State.READY, Sandbox.State.LEASED)


class Orphans:
    """What this host runs and no row knows, and since when it has been so."""

    def __init__(self, host: str, providers: Mapping[str, Provider]) -> None:
        self.host = host
        self.providers = providers
        self._since: dict[Handle, float] = {}

    def sync(self) -> list[Handle]:
        """End what has had no row for more than two sync periods; return it.

        A row may be younger than its computer by a commit: one look is no proof.
        """
        now = time.monotonic()
        found = {h: p for p in self.providers.values() for h in self._unknown(p)}
        self._since = {handle: self._since.get(handle, now) for handle in found}
        ended = []
        for handle, provider in found.items():
            if now - self._since[handle] < 2 * SYNC_EVERY_S:
                continue
            try:
                provider.stop(handle)
            except SandboxError as error:
                log.error("%s has no row and can't be ended: %s", handle.name, error)
                continue
            log.warning("ended %s: no row knows it", handle.name)
            audit.record(
                "orphan.ended", by=f"host:{self.host}", host=self.host, sandbox=handle.name,
                provider=handle.provider, boot_id=handle.boot_id,
            )  # fmt: skip
            ended.append(handle)
        return ended

    def _unknown(self, provider: Provider) -> list[Handle]:
        running = [handle for handle in provider.running() if handle.provider == provider.name]
        rows = {
            row.name: row
            for row in Sandbox.objects.filter(name__in=[handle.name for handle in running]).exclude(
                state=Sandbox.State.GONE
            )
        }
        return [handle for handle in running if self._is_orphan(handle, rows.get(handle.name))]

    def _is_orphan(self, handle: Handle, row: Sandbox | None) -> bool:
        if row is None:
            return True
        # A computer that is being started or ended is its worker's business, another host's is theirs.
        stale = row.state in _HELD and row.handle.get("boot_id") != handle.boot_id
        return row.host == self.host and stale
