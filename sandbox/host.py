"""The sandbox host: makes the computers of this machine be what their rows say.

Rows are the truth. The host may be killed at any moment: the next one adopts the computers that
still run by their boot_id, ends those without a row, and gives up rows whose computer is gone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import connection

from sandbox import pool
from sandbox.images import spec_for
from sandbox.models import Sandbox
from sandbox.provider import DesktopLost, Handle, ProvisionFailed, SandboxError

log = logging.getLogger(__name__)

POLL_S = 0.25
PROBE_EVERY_S = 2.0
MISSED_PROBES = 3
"""A computer that is busy may miss an answer; one whose process is gone is given up at once."""

_WORKERS = 3
_BREAK_AFTER = 3
_BREAK_S = (5.0, 60.0)


class Host:
    """One machine's reconcile loop; `step` does what is due and never waits for a computer."""

    def __init__(self, *, name: str, provider: str, warm: int, most: int) -> None:
        self.name = name
        self.provider_name = provider
        self.warm, self.most = warm, most
        self._provider = pool.provider(provider)
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="sandbox")
        self._busy: dict[int, Future[None]] = {}
        self._missed: dict[int, int] = {}
        self._next_probe = 0.0
        self._failures = 0
        self._not_before = 0.0

    def adopt(self) -> None:
        """Take over what an earlier host left: run once, before the first step."""
        rows = {row.name: row for row in pool.of_host(self.name)}
        for handle in self._provider.running():
            row = rows.get(handle.name)
            if row is None or row.handle.get("boot_id") != handle.boot_id:
                log.info("ending %s: no row knows it", handle.name)
                self._provider.stop(handle)
            elif row.state in (Sandbox.State.READY, Sandbox.State.LEASED):
                log.info("adopting %s", handle.name)

    def run(self, stopping: threading.Event) -> None:
        """Adopt, then step until `stopping` is set."""
        self.adopt()
        while not stopping.is_set():
            self.step()
            stopping.wait(POLL_S)
        self._workers.shutdown(wait=True)

    def step(self) -> None:
        """Look at every row once and start what is due in the background."""
        for sandbox in pool.overdue(self.name):
            if pool.mark_failed(sandbox, cause=f"still {sandbox.state} at its deadline"):
                log.warning("%s: still %s at its deadline", sandbox.name, sandbox.state)
        self._busy = {pk: work for pk, work in self._busy.items() if not work.done()}
        if time.monotonic() >= self._not_before:
            pool.replenish(
                host=self.name, provider=self.provider_name, warm=self.warm, most=self.most
            )
        probing = time.monotonic() >= self._next_probe
        for sandbox in pool.of_host(self.name):
            work = self._due(sandbox, probing)
            if work is not None and sandbox.pk not in self._busy:
                self._busy[sandbox.pk] = self._workers.submit(self._guarded, work, sandbox)
        if probing:
            self._next_probe = time.monotonic() + PROBE_EVERY_S

    def idle(self) -> bool:
        """Whether nothing is being started, stopped or probed."""
        return all(work.done() for work in self._busy.values())

    def stop_all(self) -> None:
        """End every computer of this host; leases on them are lost with the reason."""
        for sandbox in pool.of_host(self.name):
            if not pool.retire(sandbox):
                pool.mark_failed(sandbox, cause="the sandbox host was stopped")
        for handle in self._provider.running():
            self._provider.stop(handle)
        for sandbox in pool.of_host(self.name):
            pool.mark_gone(sandbox)

    def _due(self, sandbox: Sandbox, probing: bool) -> Callable[[Sandbox], None] | None:
        match sandbox.state:
            case Sandbox.State.PROVISIONING | Sandbox.State.RESETTING:
                return self._bring_up if time.monotonic() >= self._not_before else None
            case Sandbox.State.FAILED | Sandbox.State.DESTROYING:
                return self._end
            case Sandbox.State.READY | Sandbox.State.LEASED if probing:
                return self._probe
            case _:
                return None

    def _guarded(self, work: Callable[[Sandbox], None], sandbox: Sandbox) -> None:
        try:
            work(sandbox)
        except Exception as error:  # the loop must go on; the row keeps what happened
            log.exception("%s (%s)", sandbox.name, sandbox.state)
            pool.mark_failed(sandbox, cause=f"{type(error).__name__}: {error}")
        finally:
            connection.close()  # this thread's own

    def _bring_up(self, sandbox: Sandbox) -> None:
        """Start the computer afresh: stop what has its name, start, prove it, say ready."""
        began = time.monotonic()
        self._clear(sandbox)
        try:
            handle = self._provider.start(spec_for(sandbox))
            self._prove(sandbox, handle)
        except SandboxError as error:
            self._failed_start(sandbox, str(error))
            return
        self._failures = 0
        if pool.mark_ready(sandbox, handle):
            log.info("%s is ready after %.2f s", sandbox.name, time.monotonic() - began)
        else:
            self._provider.stop(handle)

    def _prove(self, sandbox: Sandbox, handle: Handle) -> None:
        """Ready means that it really shows a picture of the right size."""
        desktop = self._provider.connect(handle)
        try:
            # A caller of an older lease is refused from the first moment on.
            desktop.fence(sandbox.epoch)
            frame = desktop.observe()
        finally:
            desktop.close()
        if (frame.width, frame.height) != (sandbox.width, sandbox.height):
            self._provider.stop(handle)
            raise ProvisionFailed(
                f"{sandbox.name} shows {frame.width}x{frame.height}, "
                f"not {sandbox.width}x{sandbox.height}"
            )

    def _failed_start(self, sandbox: Sandbox, cause: str) -> None:
        """Keep the cause; after several failures in a row wait longer before the next try."""
        self._failures += 1
        pool.mark_failed(sandbox, cause=cause)
        log.error("%s did not start: %s", sandbox.name, cause)
        if self._failures >= _BREAK_AFTER:
            shortest, longest = _BREAK_S
            pause = min(longest, shortest * 2 ** (self._failures - _BREAK_AFTER))
            self._not_before = time.monotonic() + pause
            log.error("%d starts failed in a row: next try in %.0f s", self._failures, pause)

    def _end(self, sandbox: Sandbox) -> None:
        self._clear(sandbox)
        pool.mark_gone(sandbox)
        self._missed.pop(sandbox.pk, None)

    def _clear(self, sandbox: Sandbox) -> None:
        """End whatever carries the sandbox's name, whichever start it is of."""
        for handle in self._provider.running():
            if handle.name == sandbox.name:
                self._provider.stop(handle)

    def _probe(self, sandbox: Sandbox) -> None:
        handle = sandbox.as_handle()
        try:
            if not self._provider.alive(handle):
                self._missed[sandbox.pk] = MISSED_PROBES
                raise DesktopLost("its process is gone")
            self._provider.connect(handle).close()
        except DesktopLost as error:
            self._missed[sandbox.pk] = self._missed.get(sandbox.pk, 0) + 1
            if self._missed[sandbox.pk] < MISSED_PROBES:
                return
            del self._missed[sandbox.pk]
            if pool.mark_failed(sandbox, cause=f"lost: {error}"):
                log.warning("%s is lost: %s", sandbox.name, error)
        else:
            self._missed.pop(sandbox.pk, None)
            pool.probed(sandbox)
