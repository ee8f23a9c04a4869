"""Verbs of RolloutWorker: what a worker says of itself."""

from __future__ import annotations

import os
import socket
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from training.models import RolloutWorker

if TYPE_CHECKING:
    from training.rollouts.worker import Worker

EVERY_S = 5.0
GONE = timedelta(seconds=30)
FORGOTTEN = timedelta(days=1)


class Report:
    """Writes a worker's row every EVERY_S seconds, with how busy it was since the last time."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._next, self._at, self._steps = 0.0, time.monotonic(), 0

    def write(self, *, stopped: bool = False) -> None:
        now = time.monotonic()
        if now < self._next and not stopped:
            return
        worker, seconds = self.worker, max(now - self._at, 1e-3)
        steps = worker.steps + sum(job.control.steps for job in worker.running.values())
        slots = sum(one.meter.size for one in worker.slots)
        used = sum(one.meter.share() * one.meter.size for one in worker.slots)
        RolloutWorker.objects.update_or_create(
            name=worker.name,
            defaults={
                "host": socket.gethostname()[:128],
                "pid": os.getpid(),
                "environments": worker.environments,
                "slots": slots,
                "busy": {
                    "environments": round(worker.played.share(), 4),
                    "policy": round(used / slots, 4) if slots else 0.0,
                    "waiting": sum(one.waiting for one in worker.slots),
                    "running": len(worker.running),
                    "steps_per_s": round(max(steps - self._steps, 0) / seconds, 2),
                },
                "heartbeat_at": timezone.now(),
                "stopped_at": timezone.now() if stopped else None,
            },
        )
        self._next, self._at, self._steps = now + EVERY_S, now, steps


def alive() -> list[RolloutWorker]:
    """Return the workers that have been heard of lately, oldest first."""
    since = timezone.now() - GONE
    return list(
        RolloutWorker.objects.filter(heartbeat_at__gte=since, stopped_at=None).order_by("pk")
    )


def forget() -> None:
    """Drop the rows of workers that are long gone."""
    RolloutWorker.objects.filter(heartbeat_at__lt=timezone.now() - FORGOTTEN).delete()
