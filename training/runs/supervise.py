"""Looking after a run's trainer: claim the run, start or adopt the trainer, report, settle.

The row is the truth. Whoever's token stands in `Run.supervisor` looks after the run; a token is
only replaced while the heartbeat is old. A supervisor may die at any line: the next one finds the
trainer by the lock on its directory, and every step below can be done twice.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import secrets
import signal
import socket
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from blobs import BlobError
from training import jobs
from training.models import Metric, Run
from training.runs import process, workdir
from training.runs.rundir import read_status, status_path
from training.runs.runs import TRAINERS
from training.runs.tail import JsonLines
from training.streaming import servers
from training.streaming.feeder import Feeder, close
from training.streaming.servers import CantServe
from training.streaming.tokens import Unlearnable
from training.trainers import launcher
from training.weights import checkpoints

STALE = dt.timedelta(seconds=30)
REQUEUE = dt.timedelta(seconds=60)
POLL_S = 0.5
GRACE_S = 120.0  # what a trainer may take to write its checkpoint after SIGTERM
STORE_PATIENCE_S = 300.0
MAX_ATTEMPTS = 3  # of a run whose trainer or machine keeps dying under it

log = logging.getLogger(__name__)
shutting_down = threading.Event()


class Lost(Exception):
    """Another supervisor has the run; the trainer is theirs if it is on the same machine."""


def supervise(run_id: int) -> None:
    """Look after a run until it ends; does nothing where it has ended or somebody else does."""
    token = claim(run_id)
    if token is None:
        return
    watch = Watch(run_id, token)
    try:
        watch.run_to_the_end()
    except Lost:
        watch.let_go()
    except Exception:
        # Named on the row: what broke is between the database, the store and the disk.
        watch.fail(f"supervising broke:\n{traceback.format_exc(limit=-4)}")
        raise


def claim(run_id: int) -> str | None:
    """Become the supervisor of a queued or abandoned run; None where it is not to be had."""
    token = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
    state = Run.State
    abandoned = Q(state__in=(state.RUNNING, state.CANCELLING)) & (
        Q(heartbeat_at__lt=timezone.now() - STALE) | Q(heartbeat_at=None)
    )
    won = Run.objects.filter(Q(state=state.QUEUED) | abandoned, pk=run_id).update(
        state=Case(When(state=state.QUEUED, then=Value(state.RUNNING)), default=F("state")),
        supervisor=token,
        host=socket.gethostname()[:128],
        heartbeat_at=Now(),
        started_at=Coalesce(F("started_at"), Now()),
    )
    return token if won else None


def find_lost() -> int:
    """Queue again every run that nobody looks after; returns how many.

    A queued run's message may be lost, a running one's supervisor may be dead. Asking twice is
    harmless: only one claim wins.
    """
    now = timezone.now()
    state = Run.State
    unclaimed = Q(state=state.QUEUED) & (Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - REQUEUE))
    abandoned = Q(state__in=(state.RUNNING, state.CANCELLING)) & (
        Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    )
    lost = list(Run.objects.filter(unclaimed | abandoned).values_list("pk", "state"))
    for pk, was in lost:
        if was == state.QUEUED:
            Run.objects.filter(pk=pk, state=was).update(heartbeat_at=now)
        jobs.supervise_run.apply_async((pk,), expires=REQUEUE.total_seconds())
    return len(lost)


@dataclass
class Watch:
    """One supervisor's view of one run."""

    run_id: int
    token: str
    trainer: process.Process | None = None
    series: JsonLines | None = None
    uploaded: set[str] = field(default_factory=set)
    feeder: Feeder | None = None
    given_up: str = ""  # why the run can't go on, though its trainer could
    term_at: float | None = None
    killed: bool = False

    def run_to_the_end(self) -> None:
        run = Run.objects.select_related("dataset", "base", "critic", "rollout", "deployment").get(
            pk=self.run_id
        )
        directory = workdir.directory_of(run)
        if self.begin(run, directory):
            while not self.tick(directory):
                shutting_down.wait(POLL_S) if not shutting_down.is_set() else time.sleep(0.1)

    def begin(self, run: Run, directory: Path) -> bool:
        """Start or adopt the trainer; False where the run was settled without one."""
        self.series = JsonLines(directory / "metrics.jsonl")
        if process.held(directory):
            self.trainer = process.adopt(directory)
        elif run.attempts and (read_status(directory) or {}).get("state") in ENDINGS:
            self.settle(directory)  # it ended while nobody was looking
            return False
        elif run.state == Run.State.CANCELLING:
            self.close(Run.State.CANCELLED)
            self.write(state=Run.State.CANCELLED, finished_at=timezone.now())
            return False
        elif run.attempts >= MAX_ATTEMPTS:
            self.fail(f"the trainer and its supervisor died {run.attempts} times; resume to go on")
            return False
        else:
            try:
                made = workdir.prepare(run, directory)
            except workdir.CannotPrepare as error:
                self.fail(str(error))
                return False
            # Before it counts as a start: what an earlier one said last is not this one's end.
            status_path(directory).unlink(missing_ok=True)
            self.write(rows=made, attempts=F("attempts") + 1)
            module, *arguments = launcher.command(f"{TRAINERS}.{run.kind}", directory, run.config)
            self.trainer = process.start(
                directory,
                module,
                arguments,
                extra={"STORAGE_URL": settings.STORAGE_URL, "PYTHONUNBUFFERED": "1"},
            )
        self.write(directory=str(directory), pid=self.trainer.pid)
        if run.kind == Run.Kind.PPO:
            self.feeder = Feeder(run, directory)
        return True

    def tick(self, directory: Path) -> bool:
        """Carry what is new into the row; True once the run is settled."""
        assert self.trainer is not None
        ended = self.trainer.ended()  # asked first: what it wrote before ending is read below
        self.report(directory)
        if ended:
            self.settle(directory)
            return True
        try:
            self.upload(directory)
        except BlobError as error:
            # The trainer goes on, the next look tries again.
            log.warning("run %s: %s", self.run_id, error)
        state = Run.objects.values_list("state", flat=True).get(pk=self.run_id)
        if state == Run.State.CANCELLING or shutting_down.is_set() or self.given_up:
            self.stop()
        else:
            self.feed()
        return False

    def feed(self) -> None:
        """Carry episodes to the trainer of an RL run and its weights to the policy."""
        if self.feeder is None:
            return
        try:
            self.feeder.tick()
        except BlobError as error:
            log.warning("run %s: %s", self.run_id, error)
        except (Unlearnable, CantServe) as error:
            self.given_up = str(error)  # settled once the trainer has left a checkpoint

    def stop(self) -> None:
        """Ask the trainer to checkpoint and end; kill it once its time is over."""
        assert self.trainer is not None
        if self.term_at is None:
            self.term_at = time.monotonic()
            self.trainer.send(signal.SIGTERM)
        elif not self.killed and time.monotonic() - self.term_at > GRACE_S:
            self.killed = True
            self.trainer.send(signal.SIGKILL)

    def report(self, directory: Path) -> None:
        """Copy new metrics and the log's tail; raises Lost."""
        assert self.series is not None
        values: dict[str, object] = {"log": process.log_tail(directory)}
        if lines := self.series.read():
            Metric.objects.bulk_create(
                [Metric(run_id=self.run_id, step=line["step"], values=line) for line in lines],
                update_conflicts=True, unique_fields=["run", "step"], update_fields=["values"],
            )  # fmt: skip
            values |= {"step": lines[-1]["step"], "metrics": lines[-1]}
        if total := (read_status(directory) or {}).get("total_steps"):
            values["total_steps"] = total
        self.write(**values)

    def upload(self, directory: Path) -> None:
        """Store the checkpoints that are not stored yet; raises BlobError, Lost."""
        for folder in workdir.finished_checkpoints(directory):
            if str(folder) not in self.uploaded:
                checkpoints.upload(Run.objects.get(pk=self.run_id), folder)
                self.uploaded.add(str(folder))
                self.write()

    def upload_patiently(self, directory: Path) -> None:
        """Upload what the trainer left; gives up (BlobError) after STORE_PATIENCE_S."""
        until = time.monotonic() + STORE_PATIENCE_S
        while True:
            try:
                return self.upload(directory)
            except BlobError:
                if time.monotonic() > until or shutting_down.is_set():
                    raise
                self.write()
                shutting_down.wait(POLL_S)

    def settle(self, directory: Path) -> None:
        """Give the run its final state from what the trainer said and how it ended."""
        self.report(directory)
        try:
            self.upload_patiently(directory)
        except BlobError as error:
            self.fail(
                f"the checkpoints are in {directory}, but can't be stored: {error}; resume to try again"
            )
            return
        status = read_status(directory) or {}
        state = ENDINGS.get(status.get("state", ""))
        cancelling = Run.objects.filter(pk=self.run_id, state=Run.State.CANCELLING).exists()
        if self.given_up and state != Run.State.SUCCEEDED and not cancelling:
            self.fail(self.given_up)
        elif state in (Run.State.CANCELLED, None) and self.goes_down() and not cancelling:
            # Nobody cancelled it: the worker goes down, the next one goes on.
            self.close(Run.State.QUEUED)
            self.write(
                state=Run.State.QUEUED, heartbeat_at=None, attempts=0, supervisor="", pid=None
            )
        elif state == Run.State.SUCCEEDED or state == Run.State.CANCELLED:
            self.close(state)
            self.write(state=state, finished_at=timezone.now(), pid=None, error="")
        elif cancelling:
            self.close(Run.State.CANCELLED)
            why = f"it did not stop within {GRACE_S:g} s and was killed" if self.killed else ""
            self.write(state=Run.State.CANCELLED, finished_at=timezone.now(), pid=None, error=why)
        elif state is None and self.was_killed() and self.starts_left():
            # Memory ran out, or somebody's hand: it goes on from its checkpoint by itself.
            self.write(
                state=Run.State.QUEUED, heartbeat_at=None, supervisor="", pid=None,
                error=f"{self.how_it_died()}; it goes on from its last checkpoint",
            )  # fmt: skip
        else:
            how = status.get("error") or self.how_it_died()
            self.fail(f"{how}\n{process.log_tail(directory, size=3000)}".strip())

    def was_killed(self) -> bool:
        """Whether the trainer ended by a signal; an adopted one that ended without a word has too."""
        code = self.trainer.returncode if self.trainer else None
        return code is None or code < 0

    def starts_left(self) -> bool:
        attempts = Run.objects.values_list("attempts", flat=True).get(pk=self.run_id)
        return attempts < MAX_ATTEMPTS

    def goes_down(self) -> bool:
        """Whether the trainer was asked to end because this worker does.

        One that had not begun to listen then ends without a word.
        """
        return shutting_down.is_set() and self.term_at is not None

    def how_it_died(self) -> str:
        code = self.trainer.returncode if self.trainer else None
        if code is None:
            return "the trainer ended without saying why"
        if code < 0:
            return f"the trainer was killed by {signal.Signals(-code).name}"
        return f"the trainer ended with exit status {code}"

    def fail(self, error: str) -> None:
        """Settle the run as failed; the trainer, if there still is one, is stopped."""
        if self.trainer is not None:
            self.trainer.send(signal.SIGTERM)
        self.close(Run.State.FAILED)
        Run.objects.filter(pk=self.run_id, supervisor=self.token).update(
            state=Run.State.FAILED, error=error, finished_at=timezone.now(), pid=None
        )

    def close(self, state: str) -> None:
        """Stop what the run has beside its trainer, before its row says that it is `state`."""
        run = Run.objects.select_related("deployment").get(pk=self.run_id)
        if run.kind == Run.Kind.PPO and run.supervisor == self.token:
            close(run, workdir.directory_of(run), state)

    def write(self, **values: object) -> None:
        """Update the row, with a heartbeat; raises Lost where another's token is on it."""
        values.setdefault("heartbeat_at", Now())
        mine = Run.objects.filter(pk=self.run_id, supervisor=self.token)
        if not mine.update(**values):
            raise Lost

    def let_go(self) -> None:
        """Leave the run to its new supervisor; end our trainer unless they adopted it."""
        host = Run.objects.values_list("host", flat=True).filter(pk=self.run_id).first()
        if self.trainer is not None and host != socket.gethostname()[:128]:
            self.trainer.send(signal.SIGKILL)
            servers.stop(self.trainer.directory / "server")


ENDINGS = {
    "succeeded": Run.State.SUCCEEDED,
    "cancelled": Run.State.CANCELLED,
    "failed": Run.State.FAILED,
}
"""What a trainer may say last (rundir.Status.state), as the state of its run."""
