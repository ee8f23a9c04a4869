"""The sandbox host: makes the computers of this machine be what their rows say.

Rows are the truth. The host may be killed at any moment: the next one goes on with the computers that
still run, ends those without a row, and gives up rows whose computer is gone.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import InterfaceError, OperationalError, connection

from sandbox import logs, pool
from sandbox.host import hosts
from sandbox.host.computers import Computers
from sandbox.host.orphans import Orphans
from sandbox.models import Host, Pool, Sandbox
from sandbox.provider import SandboxError

log = logging.getLogger(__name__)

POLL_S = 0.25
PROBE_READY_S = 1.0
"""A lease takes a computer only if it has answered within the last two seconds."""
PROBE_LEASED_S = 2.0
REPLENISH_S = 0.25
"""How often a pool is looked at, by all its hosts together."""
GIVE_UP_EVERY_S = 5.0
SYNC_EVERY_S = 10.0
END_AGAIN_S = 2.0
_ENDERS, _PROBERS = 2, 8
_DATABASE_AWAY_S = (0.5, 5.0)
_NAME_WITHIN_S = 10.0

State = Sandbox.State
_DatabaseAway = (OperationalError, InterfaceError)


class HostProcess:
    """One machine's reconcile loop; `step` does what is due and never waits for a computer."""

    def __init__(
        self,
        *,
        name: str,
        providers: Sequence[str],
        slots: int,
        memory_mb: int = 0,
        cpus: float = 0,
        address: str = "",
        versions: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self._capacity = {
            "providers": providers, "slots": slots, "memory_mb": memory_mb, "cpus": cpus,
            "address": address, "versions": versions or {},
        }  # fmt: skip
        loaded = {provider: pool.provider(provider) for provider in providers}
        self.computers = Computers(name, loaded)
        self.orphans = Orphans(name, loaded)
        self.row: Host | None = None
        self._busy: dict[int, Future[None]] = {}
        self._probe_at: dict[int, float] = {}
        self._end_at: dict[int, float] = {}
        self._holds_name = False
        self._due_at: dict[str, float] = {}
        self._syncing: Future[None] | None = None

    def join(self) -> Host:
        """Say that this host is there, with what it can carry; before the first step."""
        self.row = hosts.join(name=self.name, **self._capacity)  # type: ignore[arg-type]
        limit = self.row.starting_limit
        self._starters = ThreadPoolExecutor(limit, thread_name_prefix="start")
        self._enders = ThreadPoolExecutor(_ENDERS, thread_name_prefix="end")
        self._probers = ThreadPoolExecutor(_PROBERS, thread_name_prefix="probe")
        return self.row

    def run(self, stopping: threading.Event) -> None:
        """Step until `stopping` is set, after hold_name() and join(); raises NameTaken, HostRemoved.

        A database that is away is waited for: computers run on meanwhile.
        """
        away_s = _DATABASE_AWAY_S[0]
        try:
            while not stopping.is_set():
                try:
                    if not self._holds_name:
                        self.hold_name(patience_s=_NAME_WITHIN_S)
                    self.step()
                    away_s = _DATABASE_AWAY_S[0]
                except _DatabaseAway as error:
                    log.warning("the database is away: %s", str(error).strip())
                    # The name goes with the connection: it is taken again before the next step.
                    self._holds_name = False
                    connection.close()
                    stopping.wait(away_s)
                    away_s = min(2 * away_s, _DATABASE_AWAY_S[1])
                stopping.wait(POLL_S)
        finally:
            self.close()

    def hold_name(self, *, patience_s: float = 0.0) -> None:
        """Be the one process that is this host; raises NameTaken.

        The server may need a moment to notice that an earlier connection of ours is gone.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                hosts.hold_name(self.name)
                self._holds_name = True
                return
            except hosts.NameTaken:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(POLL_S)

    def step(self) -> None:
        """Look at every row once and start what is due in the background."""
        assert self.row is not None, "join() comes first"
        self._busy = {pk: work for pk, work in self._busy.items() if not work.done()}
        self.computers.write_probes()
        if self._due("beat", hosts.BEAT_EVERY_S):
            self.row = hosts.beat(self.row)
        if self._due("give up", GIVE_UP_EVERY_S):
            hosts.give_up_silent()
        self._look_at_the_late()
        self._look_at_pools(self.row)
        if self.row.state == Host.State.DRAINING:
            pool.drain(self.name)
        else:
            while pool.take(self.row):
                pass
        rows = list(pool.of_host(self.name).order_by("pk"))
        here = {sandbox.pk for sandbox in rows}
        for later in (self._probe_at, self._end_at):
            for gone in later.keys() - here:
                del later[gone]
        for sandbox in rows:
            if sandbox.pk not in self._busy:
                self._do_what_is_due(sandbox)
        if (self._syncing is None or self._syncing.done()) and self._due("sync", SYNC_EVERY_S):
            self._syncing = self._enders.submit(self._sync)

    def idle(self) -> bool:
        """Whether nothing is being started, stopped or probed."""
        return all(work.done() for work in self._busy.values())

    def close(self) -> None:
        """Let what is under way end; computers run on, for the next host of this name."""
        for workers in (self._starters, self._enders, self._probers):
            workers.shutdown(wait=True, cancel_futures=True)

    def stop_all(self) -> None:
        """End every computer of this host, after close(); leases on them are lost with the reason."""
        assert self.row is not None, "join() comes first"
        for sandbox in pool.of_host(self.name):
            if not pool.retire(sandbox, cause="the sandbox host was stopped"):
                pool.mark_failed(sandbox, cause="the sandbox host was stopped")
        for sandbox in pool.of_host(self.name):
            try:
                self.computers.end(sandbox)
            except SandboxError as error:
                pool.not_ended(sandbox, why=str(error))
        hosts.leave(self.row)

    # -- what is due -----------------------------------------------------------------------

    def _due(self, what: str, every_s: float) -> bool:
        now = time.monotonic()
        if now < self._due_at.get(what, 0.0):
            return False
        self._due_at[what] = now + every_s
        return True

    def _look_at_the_late(self) -> None:
        for sandbox in pool.overdue(self.name):
            cause = f"still {sandbox.state} at its deadline"
            if sandbox.state in pool.ENDING:
                changed = pool.not_ended(sandbox, why=cause)
            else:
                changed = pool.mark_failed(sandbox, cause=cause)
            if changed:
                log.warning("%s: %s", sandbox.name, cause)

    def _look_at_pools(self, row: Host) -> None:
        """Replenish; the more hosts there are, the less often each of them looks."""
        for kind in Pool.objects.filter(provider__in=row.providers):
            if self._due(f"pool {kind.pk}", 0.0):
                pool.replenish(kind)
                others = Host.objects.filter(
                    state=Host.State.UP, providers__contains=[kind.provider]
                )
                pause_s = REPLENISH_S * max(0, others.count() - 1) * random.uniform(0.5, 1.5)
                self._due_at[f"pool {kind.pk}"] = time.monotonic() + pause_s

    def _do_what_is_due(self, sandbox: Sandbox) -> None:
        match sandbox.state:
            case State.PROVISIONING | State.RESETTING:
                if sandbox.state == State.RESETTING and (cause := pool.worn(sandbox)):
                    pool.retire(sandbox, cause=cause)
                elif sandbox.pool is None or pool.pause_s(sandbox.pool) == 0:
                    self._submit(self._starters, self.computers.bring_up, sandbox)
            case State.FAILED | State.DESTROYING:
                if time.monotonic() >= self._end_at.get(sandbox.pk, 0.0):
                    self._submit(self._enders, self.computers.end, sandbox)
            case State.READY | State.LEASED:
                if time.monotonic() >= self._probe_at.get(sandbox.pk, 0.0):
                    pause_s = PROBE_READY_S if sandbox.state == State.READY else PROBE_LEASED_S
                    self._probe_at[sandbox.pk] = time.monotonic() + pause_s
                    self._submit(self._probers, self.computers.probe, sandbox)

    def _submit(
        self, workers: ThreadPoolExecutor, work: Callable[[Sandbox], None], sandbox: Sandbox
    ) -> None:
        self._busy[sandbox.pk] = workers.submit(self._guarded, work, sandbox)

    def _guarded(self, work: Callable[[Sandbox], None], sandbox: Sandbox) -> None:
        try:
            with logs.about(sandbox=sandbox.name, epoch=sandbox.epoch):
                work(sandbox)
        except _DatabaseAway as error:  # the row is as it was: the next step does it again
            log.warning("%s (%s): %s", sandbox.name, sandbox.state, str(error).strip())
        except Exception as error:  # the loop must go on; the row keeps what happened
            log.exception("%s (%s)", sandbox.name, sandbox.state)
            cause = f"{type(error).__name__}: {error}"
            if sandbox.state in pool.ENDING:
                self._end_at[sandbox.pk] = time.monotonic() + END_AGAIN_S
                pool.not_ended(sandbox, why=cause)
            else:
                pool.mark_failed(sandbox, cause=cause)
        finally:
            connection.close()  # this thread's own

    def _sync(self) -> None:
        try:
            self.orphans.sync()
        except Exception:  # the next sync looks again
            log.exception("orphans")
        finally:
            connection.close()
