"""A process that plays episodes: one loop that owns the rows, one thread per running episode.

The threads touch no row. They hand what came of their episode to the loop, which finishes it, has it
begun again, or pauses its rollout, by the verbs of `episodes` and `rollouts`. Killed at any line, it
leaves rows that `episodes.reap` puts right.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, close_old_connections

from agent.loop import EnvironmentFailure
from agent.policy import Policy
from annotation.session import pictures
from sandbox import families
from sandbox.families import TaskSpec
from sandbox.provider import Desktop, SandboxError
from training.models import Episode, Rollout
from training.rollouts import causes, episodes, rollouts
from training.rollouts.config import RolloutConfig
from training.rollouts.environments import Pages, place
from training.rollouts.play import environment_of, play
from training.rollouts.policies import memory_of, policy_of, sampling_seed
from training.rollouts.record import NO_PICTURE, result_of
from training.rollouts.slots import Control, Meter, Slots, SlottedPolicy, Stopped
from training.rollouts.workers import Report

TICK_S = 0.1
BEAT_S = 1.0
LOOK_S = 0.5
STUCK_S = 60.0  # beyond what a step may take, before its thread is given up
LEAVE_S = 15.0  # for the threads when the worker goes

log = logging.getLogger(__name__)


@dataclass
class Job:
    """One running episode."""

    row: Episode
    config: RolloutConfig
    slots: Slots
    control: Control = field(default_factory=Control)
    thread: threading.Thread | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.row.pk, self.row.claim


@dataclass(frozen=True, slots=True)
class Seat:
    """What a policy is made for: one episode, its task and its desktop."""

    episode: Episode
    config: RolloutConfig
    task: TaskSpec
    desktop: Desktop


class Worker:
    """Plays at most `environments` episodes at once; `policy_for` makes the policy of each."""

    def __init__(
        self,
        *,
        name: str,
        pages: Pages,
        environments: int,
        policy_for: Callable[[Seat], Policy] | None = None,
    ) -> None:
        self.name, self.pages, self.environments = name, pages, environments
        self.policy_for = policy_for or (lambda seat: policy_of(seat.episode, seat.config))
        self.running: dict[tuple[int, int], Job] = {}
        self.played = Meter(environments)
        self.steps = 0
        self._ended: deque[tuple[Job, Any]] = deque()
        self._wake = threading.Event()
        self._slots: dict[int, Slots] = {}
        self._next_beat = self._next_claim = 0.0
        self._report = Report(self)

    @property
    def slots(self) -> list[Slots]:
        return list(self._slots.values())

    def run(self, stopping: threading.Event, *, until_empty: bool = False) -> None:
        """Play until `stopping` is set (or, where asked, nothing is left); then give back the rest."""
        try:
            while not stopping.is_set():
                try:
                    self.step()
                except OperationalError:
                    # Nothing is lost: results stay in line, episodes are taken back by their fence.
                    log.exception("the database does not answer")
                    close_old_connections()
                    stopping.wait(1.0)
                if until_empty and not self.running and not _live():
                    return
                self._wake.wait(TICK_S)
                self._wake.clear()
        finally:
            self._leave()

    def step(self) -> None:
        """Do what is due; never waits for an episode."""
        self._take_results()
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_S
            self._beat()
            self._report.write()
        self._give_up_stuck(now)
        if len(self.running) < self.environments and now >= self._next_claim:
            self._begin(now)

    def _begin(self, now: float) -> None:
        taken = episodes.claim(worker=self.name, n=self.environments - len(self.running))
        if not taken:
            self._next_claim = now + LOOK_S
        for row in taken:
            config = rollouts.config_of(row.rollout)
            slots = self._slots.setdefault(row.rollout_id, Slots(config.slots))
            job = Job(row, config, slots)
            job.control.go.set()
            self.running[job.key] = job
            job.thread = threading.Thread(
                target=self._play, args=(job,), name=f"episode-{row.pk}", daemon=True
            )
            job.thread.start()

    def _play(self, job: Job) -> None:
        """Run in the episode's thread: from its environment to its stored trajectory."""
        self.played.add(1)
        try:
            came: Any = self._played(job)
        except Exception as error:  # the loop decides what it means
            came = error
        finally:
            self.played.add(-1)
        self._ended.append((job, came))
        self._wake.set()

    def _played(self, job: Job) -> episodes.Result:
        row, config, control = job.row, job.config, job.control
        family = families.load(row.family)
        task = families.find(family, row.task)
        key = f"episode-{row.pk}-{row.claim}"
        try:
            with place(self.pages, task, row.seed, key=key, control=control) as here:
                environment = environment_of(
                    here.desktop, family, task, row.seed, epoch=here.epoch, config=config,
                    control=control, keep=pictures.put if config.picture else lambda _: NO_PICTURE,
                    stay=here.keep,
                )  # fmt: skip
                policy = self.policy_for(Seat(row, config, task, here.desktop))
                slotted = SlottedPolicy(policy, job.slots, control, config.patience_s)
                played = play(
                    environment, slotted, config=config, memory=memory_of(policy, config),
                    sampling_seed=sampling_seed(row),
                )  # fmt: skip
        except SandboxError as error:
            raise EnvironmentFailure(f"no environment: {error}") from error
        return result_of(row, task, played, control, pictures.store())

    def _take_results(self) -> None:
        while self._ended:
            job, came = self._ended[0]
            if self.running.get(job.key) is job:
                self._settle(job, came)
                del self.running[job.key]
                self.steps += job.control.steps
                self._next_claim = 0.0
            self._ended.popleft()

    def _settle(self, job: Job, came: Any) -> None:
        row, claim = job.row, job.row.claim
        if isinstance(came, episodes.Result):
            episodes.finish(row.pk, claim, came)
            return
        meaning = causes.of(came, steps=job.control.steps)
        match meaning:
            case causes.Broken(cause, detail):
                log.info("%s of %s: %s: %s", row, row.rollout.name, cause, detail)
                episodes.fail_environment(row.pk, claim, cause=cause, detail=detail)
            case causes.Blocked(reason):
                episodes.give_back(row.pk, claim)
                rollouts.block(row.rollout, reason=reason)
            case causes.Hopeless(reason):
                episodes.give_back(row.pk, claim)
                rollouts.block(row.rollout, reason=reason, for_good=True)
            case causes.Left():
                episodes.give_back(row.pk, claim)

    def _beat(self) -> None:
        if not self.running:
            return
        held = episodes.beat(
            worker=self.name, steps={job.row.pk: job.control.steps for job in self.running.values()}
        )
        ids = {job.row.rollout_id for job in self.running.values()}
        states = dict(Rollout.objects.filter(pk__in=ids).values_list("pk", "state"))
        for (pk, claim), job in self.running.items():
            if held.get(pk) != claim:
                job.control.stop.set()  # cancelled, or given to somebody else
            if states.get(job.row.rollout_id) == Rollout.State.PAUSED:
                job.control.go.clear()
            else:
                job.control.go.set()
        for pk in set(self._slots) - ids:
            del self._slots[pk]

    def _give_up_stuck(self, now: float) -> None:
        for key, job in list(self.running.items()):
            since = job.control.busy_since
            if since is None or now - since < job.config.step_s + STUCK_S:
                continue
            job.control.stop.set()  # should the thread ever come back
            del self.running[key]
            self._settle(job, EnvironmentFailure(f"no answer for {now - since:.0f} s"))

    def _leave(self) -> None:
        """Give back what is running: another worker begins it again."""
        for job in self.running.values():
            job.control.stop.set()
        deadline = time.monotonic() + LEAVE_S
        for job in list(self.running.values()):
            if job.thread is not None:
                job.thread.join(max(deadline - time.monotonic(), 0))
        self._take_results()
        for job in self.running.values():
            episodes.give_back(job.row.pk, job.row.claim)
        self.running.clear()
        self._report.write(stopped=True)


def _live() -> bool:
    return Rollout.objects.filter(state__in=Rollout.LIVE).exists()


__all__ = ["Job", "Seat", "Stopped", "Worker"]
