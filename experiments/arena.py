"""The arena: many episodes at once on kept pages, sampled from a checkpoint in this process."""

from __future__ import annotations

import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.loop import EnvironmentFailure
from agent.memory import Memory
from agent.policy import Policy, PolicyError
from agent.serving.engine import Engine
from experiments.pages import Pages, environment, steps_of
from experiments.policies import OraclePolicy, Sampler
from experiments.tasks import Case
from sandbox import families
from sandbox.provider import Desktop, SandboxError
from sandbox.providers.browser import Fleet
from training.rollouts.config import RolloutConfig
from training.rollouts.play import play
from training.rollouts.slots import Control
from trajectory import Trajectory

THREADS = 12
PAGES = 44
ATTEMPTS = 3

PolicyFor = Callable[[Case, Desktop], Policy]


class Broken(Exception):
    """An episode's page broke in every attempt: nothing may be concluded from the run."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished episode; `number` counts them in the order in which they ended, from 1."""

    number: int
    case: Case
    trajectory: Trajectory

    @property
    def reward(self) -> float:
        return self.trajectory.reward or 0.0

    @property
    def solved(self) -> bool:
        return self.reward >= 1.0


class Arena:
    """Plays cases in `threads` threads; `open_arena` makes one."""

    def __init__(self, pages: Pages, state: Path, *, threads: int = THREADS) -> None:
        self.engine = Engine(state, slots=threads, max_waiting=4 * threads, exact=True)
        self.pages, self.threads = pages, threads
        self.seconds, self.steps, self.episodes, self.refused = 0.0, 0, 0, 0

    def load(self, checkpoint: Path, version: str = "") -> None:
        """Answer with this checkpoint from now on; raises CheckpointError."""
        self.engine.load(str(checkpoint.absolute()), version).result()

    def sample(
        self, cases: Iterable[Case], *, seed: int = 0, temperature: float = 1.0, max_steps: int = 0
    ) -> Iterator[Episode]:
        """Play with the checkpoint that is loaded and yield episodes as they end; raises Broken.

        A case is begun when a thread is free for it, so that an endless iterator may wait for room.
        """
        sampler = Sampler(self.engine, temperature)
        return self._run(cases, lambda case, desktop: sampler, seed, max_steps)

    def demonstrate(self, cases: Iterable[Case]) -> Iterator[Episode]:
        """Play with the oracles; episodes that can't be said in elements are left out."""
        return self._run(cases, OraclePolicy, 0, 0)

    def _run(
        self, cases: Iterable[Case], policy_for: PolicyFor, seed: int, max_steps: int
    ) -> Iterator[Episode]:
        begun = time.monotonic()
        waiting = iter(cases)
        ended: list[Trajectory | BaseException | None] = []
        played: list[tuple[Case, Trajectory]] = []
        turn, changed = threading.Lock(), threading.Condition()
        stop = threading.Event()

        def work() -> None:
            try:
                while not stop.is_set():
                    with turn:
                        case = next(waiting, None)
                    if case is None:
                        break
                    trajectory = self._played(case, policy_for, seed, max_steps)
                    with changed:
                        if trajectory is None:
                            self.refused += 1
                        else:
                            played.append((case, trajectory))
                        changed.notify()
            except BaseException as error:
                with changed:
                    ended.append(error)
                    changed.notify()
                return
            with changed:
                ended.append(None)
                changed.notify()

        number = 0
        with ThreadPoolExecutor(self.threads, "episode") as pool:
            for _ in range(self.threads):
                pool.submit(work)
            try:
                while True:
                    with changed:
                        changed.wait_for(lambda: played or len(ended) == self.threads or any(ended))
                        failed = next((e for e in ended if isinstance(e, BaseException)), None)
                        if failed is not None:
                            raise failed
                        if not played:
                            return
                        case, trajectory = played.pop(0)
                    number += 1
                    self.episodes += 1
                    self.steps += len(trajectory.steps)
                    yield Episode(number, case, trajectory)
            finally:
                stop.set()
                self.seconds += time.monotonic() - begun

    def _played(
        self, case: Case, policy_for: PolicyFor, seed: int, max_steps: int
    ) -> Trajectory | None:
        _, task = families.task(case.task)
        config = RolloutConfig(
            max_steps=max_steps or steps_of(case), every_reply=True, picture=False
        )
        drawn = zlib.crc32(f"{seed}/{case.id}".encode()) & 0x3FFFFFFF
        for attempt in range(ATTEMPTS):
            control = Control()
            try:
                with self.pages.page(task) as page:
                    played = play(
                        environment(page, case, control),
                        policy_for(case, page),
                        config=config,
                        memory=Memory(),
                        sampling_seed=drawn,
                    )
                break
            except (EnvironmentFailure, SandboxError) as error:
                if attempt == ATTEMPTS - 1:
                    raise Broken(f"{case.id}: {error}") from error
            except PolicyError:
                if policy_for is OraclePolicy:
                    return None
                raise
        return Trajectory(
            id=case.id,
            task=case.task,
            instruction=played.instruction,
            steps=played.steps,
            outcome=played.outcome,
            reward=played.verdict.reward,
            source="experiment",
            metadata={"seed": str(case.seed), "variant": case.variant},
        )


@contextmanager
def open_arena(state: Path, *, threads: int = THREADS, pages: int = PAGES) -> Iterator[Arena]:
    """Return an arena with its own browsers; `state` is a folder for what they leave meanwhile.

    Several processes may have one each.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=state, ignore_cleanup_errors=True) as own,
        Fleet(2, Path(own, "browsers"), pages=pages) as fleet,
    ):
        yield Arena(Pages(fleet, pages), Path(own), threads=threads)
