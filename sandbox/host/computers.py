"""What a host does to one computer: bring it up, believe it, probe it, end it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from django.db import connection

from sandbox import pool
from sandbox.capabilities import Limited, OwnScreen, Snapshots
from sandbox.host import limits
from sandbox.images import spec_for
from sandbox.models import Pool, Sandbox
from sandbox.proof import mark, prove
from sandbox.provider import (
    Desktop,
    DesktopLost,
    Handle,
    Provider,
    ProvisionFailed,
    SandboxError,
    SandboxSpec,
)

log = logging.getLogger(__name__)

CLEAN = "clean"
"""The snapshot of a computer that nobody has used yet."""

MISSED_PROBES = 3
"""A computer that is busy may miss an answer; one whose process is gone is given up at once."""


class Computers:
    """The computers of one host; every method may block and runs in a thread of its own.

    The host never has two threads work on one computer.
    """

    def __init__(self, host: str, providers: Mapping[str, Provider]) -> None:
        self.host = host
        self.providers = providers
        self._missed: dict[int, int] = {}
        self._open: dict[int, tuple[str, Desktop]] = {}
        self._answered: set[int] = set()
        self._lock = threading.Lock()

    def bring_up(self, sandbox: Sandbox) -> None:
        """Start or reset the computer, prove that it is fresh, say ready."""
        if not pool.begin(sandbox):
            return
        began = time.monotonic()
        try:
            handle = self._fresh(sandbox)
        except SandboxError as error:
            self._failed_start(sandbox, str(error))
            return
        if not connection.is_usable():  # cut meanwhile: what has started must not be lost for it
            connection.close()
        if sandbox.pool is not None:
            pool.start_succeeded(sandbox.pool, host=self.host)
        if pool.mark_ready(sandbox, handle):
            log.info("%s is ready after %.2f s", sandbox.name, time.monotonic() - began)
        else:
            self._provider(sandbox).stop(handle)

    def end(self, sandbox: Sandbox) -> None:
        """End the computer and all that it left, and say gone; raises SandboxError."""
        self._forget(sandbox)
        if sandbox.provider in self.providers:
            self._note_limits(sandbox)
            self._clear(sandbox)
        pool.mark_gone(sandbox)

    def probe(self, sandbox: Sandbox) -> None:
        """Ask the guest whether it is there; after several misses the computer is lost."""
        try:
            provider = self._provider(sandbox)
            if not provider.alive(sandbox.as_handle()):
                self._missed[sandbox.pk] = MISSED_PROBES
                raise DesktopLost(_why_gone(sandbox, provider))
            self._desktop(sandbox, provider).health()
        except SandboxError as error:
            self._hang_up(sandbox)
            missed = self._missed[sandbox.pk] = self._missed.get(sandbox.pk, 0) + 1
            if missed < MISSED_PROBES:
                return
            del self._missed[sandbox.pk]
            if pool.mark_failed(sandbox, cause=f"lost: {error}"):
                log.warning("%s is lost: %s", sandbox.name, error)
        else:
            self._missed.pop(sandbox.pk, None)
            with self._lock:
                self._answered.add(sandbox.pk)

    def write_probes(self) -> None:
        """Note all computers that have answered since the last call, in one statement."""
        with self._lock:
            answered, self._answered = self._answered, set()
        pool.probed(answered)

    # -- starting --------------------------------------------------------------------------

    def _fresh(self, sandbox: Sandbox) -> Handle:
        provider, rules = self._provider(sandbox), sandbox.pool
        snapshots = rules is not None and rules.reset_by == Pool.ResetBy.SNAPSHOT
        self._forget(sandbox)
        resetting = sandbox.state == Sandbox.State.RESETTING
        if resetting:
            self._note_limits(sandbox)
        if snapshots and resetting and isinstance(provider, Snapshots):
            return self._proved(sandbox, provider.restore(sandbox.as_handle(), CLEAN))
        self._clear(sandbox)
        handle = provider.start(_spec(sandbox))
        # Before anything is written into it: what is restored later has to be clean.
        if snapshots and isinstance(provider, Snapshots):
            provider.snapshot(handle, CLEAN)
        return self._proved(sandbox, handle)

    def _proved(self, sandbox: Sandbox, handle: Handle) -> Handle:
        provider = self._provider(sandbox)
        if isinstance(provider, OwnScreen):
            sandbox.width, sandbox.height = provider.screen(handle)
        desktop = provider.connect(handle)
        boot_id, epoch = handle.boot_id, sandbox.epoch
        try:
            prove(desktop, boot_id=boot_id, epoch=epoch, width=sandbox.width, height=sandbox.height)
            mark(desktop, boot_id=boot_id, epoch=epoch)
        finally:
            desktop.close()
        return handle

    def _failed_start(self, sandbox: Sandbox, cause: str) -> None:
        log.error("%s did not start: %s", sandbox.name, cause)
        pool.mark_failed(sandbox, cause=cause)
        if sandbox.pool is not None:
            pool.start_failed(sandbox.pool, host=self.host, cause=cause)

    # -- ending ----------------------------------------------------------------------------

    def _clear(self, sandbox: Sandbox) -> None:
        """End whatever carries the sandbox's name, whichever start it is of."""
        provider = self._provider(sandbox)
        for handle in provider.running():
            if handle.name == sandbox.name:
                provider.stop(handle)

    def _note_limits(self, sandbox: Sandbox) -> None:
        provider = self._provider(sandbox)
        if not isinstance(provider, Limited) or not sandbox.handle:
            return
        if found := limits.ran_into(provider, sandbox.as_handle()):
            pool.note_limits(sandbox, ran_into=found)

    # -- asking ----------------------------------------------------------------------------

    def _provider(self, sandbox: Sandbox) -> Provider:
        found = self.providers.get(sandbox.provider)
        if found is None:
            raise ProvisionFailed(f"host {self.host} has no provider {sandbox.provider!r} any more")
        return found

    def _desktop(self, sandbox: Sandbox, provider: Provider) -> Desktop:
        """Return a connection that is kept from probe to probe: a new one costs more than the answer."""
        handle = sandbox.as_handle()
        known = self._open.get(sandbox.pk)
        if known is None or known[0] != handle.boot_id:
            self._hang_up(sandbox)
            known = self._open[sandbox.pk] = (handle.boot_id, provider.connect(handle))
        return known[1]

    def _forget(self, sandbox: Sandbox) -> None:
        self._missed.pop(sandbox.pk, None)
        self._hang_up(sandbox)

    def _hang_up(self, sandbox: Sandbox) -> None:
        known = self._open.pop(sandbox.pk, None)
        if known is not None:
            known[1].close()


def _spec(sandbox: Sandbox) -> SandboxSpec:
    allow = tuple(str(rule) for rule in sandbox.egress)
    network = sandbox.network or ("allowlist" if allow else "none")
    spec, rules = replace(spec_for(sandbox), network=network, allow=allow), sandbox.pool
    return spec if rules is None else replace(spec, memory_mb=rules.memory_mb, cpus=rules.cpus)


def _why_gone(sandbox: Sandbox, provider: Provider) -> str:
    """Return what its provider says of a computer whose process is gone."""
    try:
        provider.connect(sandbox.as_handle()).close()
    except SandboxError as error:
        return f"its process is gone: {error}"
    return "its process is gone"
