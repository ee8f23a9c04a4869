"""Processes of a streaming RL run, to be killed: a worker, a supervisor, a page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Count

from sandbox import families
from sandbox.verdict import Verdict
from tests.training.rollout_toys import PaperPages, Toys
from training.models import Episode, Rollout, Run
from training.rollouts import episodes

WORKER = "from tests.training import streaming_parts; streaming_parts.work()"
SUPERVISOR = """
from training.runs import supervise
supervise.POLL_S = 0.1
supervise.supervise(int(sys.argv[3]))
"""
WEB = """
import uvicorn
uvicorn.run("config.asgi:application", port=0, log_level="warning")
"""
SETUP = """
import sys, django; django.setup(); from pathlib import Path; from django.conf import settings
settings.RUNS_DIR, settings.STORAGE_URL = Path(sys.argv[1]), sys.argv[2]
"""


class LuckyToys(Toys):
    """Toys whose reward is a matter of the seed: a policy of random weights clicks nothing."""

    def verify(self, desktop, task, seed, *, answer="", gave_up=False):
        return Verdict(float(seed % 2), "luck", False, 0.0)


def register() -> None:
    """Put the family into the registry of this process."""
    family, load = LuckyToys(), families.load
    families.load = lambda name: family if name == "toys" else load(name)


def work() -> None:
    """Play episodes until killed."""
    import threading

    from training.rollouts.worker import Worker

    register()
    player = Worker(name=f"w{os.getpid()}", pages=PaperPages(), environments=6)
    player.run(threading.Event())


def start(code: str, *arguments: object, environment: Mapping[str, str]) -> subprocess.Popen:
    """Start `code` as a process that works on the test's database, runs and blobs."""
    everything = [str(settings.RUNS_DIR), settings.STORAGE_URL, *map(str, arguments)]
    return subprocess.Popen(
        [sys.executable, "-c", SETUP + code, *everything],
        env=dict(environment), cwd=settings.BASE_DIR,
    )  # fmt: skip


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def wait_for(what: Callable[[], object], *, deadline_s: float = 240) -> None:
    """Wait for a condition; episodes of dead workers are taken back meanwhile, as beat does it."""
    until = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < until, f"it did not happen in time: {standing()}"
        episodes.reap(silent=timedelta(seconds=8))
        time.sleep(0.05)


def standing() -> list[object]:
    """How runs, rollouts and episodes stand, for whoever reads a failure."""
    counted = Episode.objects.values_list("state").annotate(Count("pk"))
    return [
        *Run.objects.values_list("state", "step", "attempts", "error"),
        *Rollout.objects.values_list("state", "version", "total", "error"),
        *counted.order_by("state"),
        *Episode.objects.exclude(failures=[]).values_list("pk", "failures"),
    ]


def ledger(directory: Path) -> list[dict]:
    """The whole lines of updates.jsonl."""
    path = directory / "updates.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def now(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)
