"""Streaming RL without a database: the arena plays while the trainer learns, in step by two files.

It does what the supervisor's feeder does with rows (training.streaming): finished episodes go to
stream.jsonl in the order in which they began, each new folder below served/ is played from then on,
and no episode begins that would be staler than the bound when it is used.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from experiments import runs
from experiments.arena import Arena, Episode
from experiments.tasks import Case
from training.data.stream_rows import TokenEpisode, append, last_sequence, of_trajectory
from training.rollouts.admission import admitted
from training.runs.rundir import RunDir, folders

LOOK_S = 0.05


class TrainerGone(Exception):
    """The trainer ended before it had its updates; the message names its log."""


@dataclass
class Gate:
    """Lets cases begin while the staleness bound allows it, until the trainer is done."""

    cases: Iterator[Case]
    batch: int
    staleness: int
    concurrency: int
    version: int = 0
    accepted: int = 0
    running: int = 0
    closed: bool = False
    order: list[Case] = field(default_factory=list)
    begun_at: dict[Case, int] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __iter__(self) -> Iterator[Case]:
        return self

    def __next__(self) -> Case:
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.room() > 0)
            if self.closed:
                raise StopIteration
            case = next(self.cases)
            self.order.append(case)
            self.begun_at[case] = self.version
            self.running += 1
            return case

    def room(self) -> int:
        """Return how many more cases may begin now."""
        return admitted(
            running=self.running,
            concurrency=self.concurrency,
            accepted=self.accepted,
            version=self.version,
            batch=self.batch,
            staleness=self.staleness,
        )

    def ended(self) -> None:
        with self.changed:
            self.running -= 1
            self.accepted += 1
            self.changed.notify_all()

    def advance(self, version: int) -> None:
        with self.changed:
            self.version = version
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()


def tokens(episode: Episode, *, number: int, staleness: int) -> TokenEpisode:
    """Return what a trainer reads of an episode; `number` is its place in the stream, from 1."""
    return of_trajectory(
        episode.trajectory,
        episode=number,
        sequence=number,
        group=episode.case.group,
        reward=episode.reward,
        staleness=staleness,
    )


def train(
    arena: Arena,
    run: RunDir,
    *,
    base: Path,
    cases: Iterator[Case],
    batch: int,
    staleness: int,
    seed: int,
) -> Path:
    """Run a PPO trainer to its end with the arena as its environment; returns the checkpoint.

    A run that succeeded already is not run again; one that was cut short is begun anew, since the
    arena has forgotten its episodes. Raises TrainerFailed, Broken.
    """
    if run.status().state == "succeeded":
        return runs.newest(run)
    name = str(run.config()["version"])
    arena.load(base, f"{name}-step-0")
    gate = Gate(cases, batch, staleness, arena.threads)
    trainer = runs.begun("ppo", run)
    watcher = threading.Thread(
        target=_watch, args=(arena, run, trainer, gate, name), name="weights", daemon=True
    )
    watcher.start()
    waiting: dict[Case, Episode] = {}
    number = last_sequence(run.path)
    try:
        for episode in arena.sample(gate, seed=seed):
            gate.ended()
            waiting[episode.case] = episode
            ready = []
            # Groups stay together: what began first comes first, whatever ended first.
            while gate.order and gate.order[0] in waiting:
                case = gate.order.pop(0)
                number += 1
                stale = gate.version - gate.begun_at.pop(case)
                ready.append(tokens(waiting.pop(case), number=number, staleness=stale))
            append(run.path, ready)
        trainer.wait()
    finally:
        gate.close()
        if trainer.poll() is None:
            trainer.terminate()
            trainer.wait()
        watcher.join()
    return runs.newest(run)


def _watch(
    arena: Arena, run: RunDir, trainer: subprocess.Popen[bytes], gate: Gate, name: str
) -> None:
    """Give the arena each new version until the trainer ends, then close the gate."""
    try:
        while trainer.poll() is None:
            served = folders(run.path / "served")
            newest = max(served, default=0)
            if newest > gate.version:
                arena.load(served[newest], f"{name}-step-{newest}")
                gate.advance(newest)
            time.sleep(LOOK_S)
    finally:
        gate.close()
