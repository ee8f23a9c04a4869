"""What the benchmark of rollouts, and its test, are made of: policies, a killer, a database."""

from __future__ import annotations

import os
import random
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.policy import Candidate, PolicyRequest
from trajectory import Fail, Move

TASKS = ("click-test", "click-test-2", "click-button", "click-link", "click-dialog", "focus-text")
"""MiniWoB++ pages that the oracle solves in one or two steps: the rest of the length is `length`."""


@contextmanager
def database(*, sync: bool = False) -> Iterator[Path]:
    """Start a PostgreSQL of our own, set Django up on it with all tables, and yield the state folder.

    With `sync` every commit is on the disk before it is answered, as in production.
    """
    from config.embedded.postgres import Postgres, reachable
    from config.embedded.service import free_port, launch, stop, unprivileged, wait_ready

    with tempfile.TemporaryDirectory(prefix="tandem-bench-", ignore_cleanup_errors=True) as folder:
        state = Path(folder)
        state.chmod(0o755)  # the database's account passes through it
        account = unprivileged()
        cluster = Postgres(
            data=state / "postgres", port=free_port(), password=secrets.token_hex(8),
            account=account, install=reachable(account, state / "binaries"), sync=sync,
        )  # fmt: skip
        cluster.prepare()
        log = state / "postgres.log"
        process = launch(cluster, log=log, account=account)
        try:
            wait_ready(cluster, process, log=log, deadline_s=60)
            cluster.make_database("tandem")
            os.environ |= {
                "DATABASE_URL": cluster.url("tandem"), "TANDEM_STATE": str(state),
                "STORAGE_URL": f"file://{state / 'blobs'}", "LOG_LEVEL": "WARNING",
                "DJANGO_SETTINGS_MODULE": "config.settings",
            }  # fmt: skip
            import django
            from django.core.management import call_command
            from django.db import connection

            django.setup()
            call_command("migrate", verbosity=0)
            yield state
            connection.close()
        finally:
            stop(cluster, process)


def length(task: str, seed: int, *, most: int) -> int:
    """Return how many steps an episode dawdles: Pareto (shape 1.1, median 5), at most `most`."""
    return min(most, int(2.7 * random.Random(f"{task}/{seed}").paretovariate(1.1)))


@dataclass
class Dawdler:
    """Moves the mouse `idle` times, then does what the task's oracle says; or gives up at once then.

    It holds its slot for `seconds` per answer, as a model on another machine does, and notes in
    `calls` from when to when.
    """

    seat: Any
    idle: int
    seconds: float
    calls: list[tuple[float, float]]
    gives_up: bool = False
    oracle: Any = field(init=False)

    def __post_init__(self) -> None:
        from sandbox import families

        family = families.load(self.seat.task.family)
        self.oracle = family.oracle(self.seat.task, self.seat.episode.seed)

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        begun = time.monotonic()
        if len(request.history) < self.idle:
            x = 20 + len(request.history) % 100
            answer = Candidate("I look around.", Move(x, 5), "", version="dawdler")
        elif self.gives_up:
            answer = Candidate("I give up.", Fail("a test"), "", version="dawdler")
        else:
            # The oracle looks behind the screen of this episode's page.
            thought, action = self.oracle.decide(self.seat.desktop, request.history[self.idle :])
            answer = Candidate(thought, action, "", version="dawdler")
        left = self.seconds - (time.monotonic() - begun)
        if left > 0:
            time.sleep(left)
        self.calls.append((begun, time.monotonic()))
        return [answer]


class Watched:
    """A fleet whose open pages are known, so that a random one's browser can be killed."""

    def __init__(self, fleet: Any) -> None:
        self.fleet, self.killed = fleet, 0
        self._open: dict[int, Any] = {}
        self._lock = threading.Lock()

    def open(self, spec: Any) -> Any:
        page = self.fleet.open(spec)
        with self._lock:
            self._open = {k: p for k, p in self._open.items() if p.health()["ready"]}
            self._open[id(page)] = page
        return page

    def kill_one(self, chance: random.Random) -> bool:
        """Send SIGKILL to the browser of a random open page; False where there is none."""
        with self._lock:
            alive = [page for page in self._open.values() if page.health()["ready"]]
        if not alive:
            return False
        os.kill(chance.choice(alive).browser_pid, signal.SIGKILL)
        self.killed += 1
        return True


@contextmanager
def killing(pages: Watched, *, finished: Callable[[], int], every: int) -> Iterator[None]:
    """Kill a browser each time `every` more episodes have finished."""
    over, chance = threading.Event(), random.Random(5)

    def run() -> None:
        from django.db import connection

        due = every // 2
        while not over.wait(0.02):
            if finished() >= due and pages.kill_one(chance):
                due += every
        connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def resident_mb() -> float:
    """Return this process's resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
