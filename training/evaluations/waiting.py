"""Waiting for an evaluation at a terminal, with or without a worker of its own."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from sandbox.providers.browser import Fleet
from training.evaluations import evaluations
from training.models import Evaluation, Rollout
from training.rollouts import workers
from training.rollouts.worker import Worker

POLL_S = 1.0
BROWSERS = 2
"""How many processes of a browser an own worker has at most; each holds several pages."""


class WorkerBroke(Exception):
    """The worker of this process ended by an error; the episodes wait for another one."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation is; `trouble` is what a person should know, empty where all is well."""

    state: str
    ended: int
    total: int
    successes: int
    judged: int
    broken: int
    trouble: str

    @property
    def line(self) -> str:
        rate = f", {100 * self.successes / self.judged:.1f} % solved so far" if self.judged else ""
        broken = f", {self.broken} with a broken environment" if self.broken else ""
        return f"{self.state}: {self.ended} of {self.total} episodes{rate}{broken}"


def progress(evaluation: Evaluation, *, alone: bool = True) -> Progress:
    """Return how far the rows are now; `alone` is False where this process plays them itself."""
    rollout = Rollout.objects.get(pk=evaluation.rollout_id)
    episodes = evaluations.played(evaluation)
    judged = [episode for episode in episodes if episode.judged]
    trouble = rollout.error
    if not trouble and alone and rollout.state in Rollout.LIVE and not workers.alive():
        trouble = "no rollout worker is running: start one, or say --worker"
    return Progress(
        state=rollout.state,
        ended=sum(episode.state not in ("waiting", "running") for episode in episodes),
        total=len(episodes),
        successes=sum(episode.success for episode in judged),
        judged=len(judged),
        broken=sum(episode.state == "broken" for episode in episodes),
        trouble=trouble,
    )


def wait(
    evaluation: Evaluation,
    *,
    say: Callable[[Progress], None],
    broke: Callable[[], Exception | None] | None = None,
) -> None:
    """Return when the evaluation has ended, its results kept; `say` hears of every change.

    Raises WorkerBroke where `broke` tells of the error that ended this process's own worker.
    """
    last: Progress | None = None
    while True:
        now = progress(evaluation, alone=broke is None)
        if now != last:
            say(now)
        last = now
        if now.state not in Rollout.LIVE:
            break
        if broke is not None and (error := broke()) is not None:
            raise WorkerBroke(f"{type(error).__name__}: {error}") from error
        time.sleep(POLL_S)
    evaluation.rollout.refresh_from_db()
    evaluations.settle(evaluation)


@contextmanager
def own_worker(environments: int) -> Iterator[Worker]:
    """Give a worker with browsers of its own, which end with the context. Raises SandboxError."""
    name = f"evaluate-{socket.gethostname()}-{os.getpid()}"
    with Fleet(browsers=min(environments, BROWSERS)) as fleet:
        yield Worker(name=name, pages=fleet, environments=environments)


@contextmanager
def playing(worker: Worker) -> Iterator[Callable[[], Exception | None]]:
    """Let `worker` play in a thread of this process; what it has not finished is given back.

    Gives a function that tells by which error the worker ended, None while it plays.
    """
    stopping, errors = threading.Event(), list[Exception]()

    def play() -> None:
        try:
            worker.run(stopping)
        except Exception as error:  # named by whoever waits
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=play, name="rollout-worker")
    thread.start()
    try:
        yield lambda: errors[0] if errors else None
    finally:
        stopping.set()
        thread.join()
