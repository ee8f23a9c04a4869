"""One episode from its setup to its verdict: no row is touched, any thread may do it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.environment import DesktopEnvironment
from agent.loop import ActionRefused, Ended, EnvironmentFailure, UnreadablePolicy, run
from agent.memory import Memory
from agent.policy import Policy
from blobs import BlobError
from sandbox.families import TaskFamily, TaskSpec
from sandbox.provider import Desktop, SandboxError
from sandbox.verdict import Verdict
from training.rollouts.config import RolloutConfig
from training.rollouts.slots import Control, Stopped
from trajectory import Action, Fail, Finish, Observation, Outcome, Step


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that came to its end: what happened, and what the verifier says."""

    instruction: str
    steps: tuple[Step, ...]
    outcome: Outcome
    verdict: Verdict
    seconds: float

    @property
    def versions(self) -> list[str]:
        """The model versions that decided, in order of their first step."""
        return list(dict.fromkeys(step.model_version for step in self.steps if step.model_version))


@dataclass
class TaskEnvironment:
    """A desktop on which a task is played: time goes on and the verifier looks after each action."""

    desktop: Desktop
    family: TaskFamily
    task: TaskSpec
    seed: int
    epoch: int
    step_s: float
    control: Control
    inner: DesktopEnvironment
    stay: Callable[[], None]
    verdict: Verdict | None = None
    _used: float = field(default=0.0)

    def setup(self) -> str:
        """Bring the desktop to the start and return the instruction; raises EnvironmentFailure."""
        with self._asked("setup", limit=False):
            return self.family.setup(self.desktop, self.task, self.seed, epoch=self.epoch)

    def observe(self) -> Observation:
        self._used = 0.0
        with self._asked("observe"):
            self.stay()
            return self.inner.observe()

    def act(self, action: Action) -> None:
        """Do `action`, let the time pass that the task says, and judge; raises Ended."""
        refusal: ActionRefused | None = None
        with self._asked("act"):
            try:
                self.inner.act(action)
            except ActionRefused as error:
                refusal = error
            advance = getattr(self.family, "advance", None)
            if advance is not None:
                advance(self.desktop, self.task)
        if not self.task.at_end and self.judge().done:
            raise Ended
        if refusal is not None:
            raise refusal

    def judge(self, last: Step | None = None) -> Verdict:
        """Ask the verifier, at the end with the last step; raises EnvironmentFailure."""
        said = last.action if last else None
        with self._asked("verify", limit=last is None):
            self.verdict = self.family.verify(
                self.desktop,
                self.task,
                self.seed,
                answer=said.answer if isinstance(said, Finish) else "",
                gave_up=isinstance(said, Fail),
            )
        return self.verdict

    @contextmanager
    def _asked(self, what: str, *, limit: bool = True) -> Iterator[None]:
        """Say since when the environment is asked, and whose fault it is when that goes wrong."""
        begun = self.control.busy_since = time.monotonic()
        try:
            yield
        except (EnvironmentFailure, ActionRefused, BlobError):
            raise  # a store that is away is neither the environment's fault nor the policy's
        except SandboxError as error:
            raise EnvironmentFailure(f"{what}: {type(error).__name__}: {error}") from error
        except Exception as error:
            # A family's or a page's own mistake says nothing about the policy either.
            raise EnvironmentFailure(f"{what} broke: {type(error).__name__}: {error}") from error
        finally:
            self.control.busy_since = None
        self._used += time.monotonic() - begun
        if limit and self._used > self.step_s:
            raise EnvironmentFailure(
                f"{what}: the environment took {self._used:.1f} s for a step, of {self.step_s:g} s"
            )


def play(
    environment: TaskEnvironment,
    policy: Policy,
    *,
    config: RolloutConfig,
    memory: Memory,
    sampling_seed: int,
) -> Played:
    """Play to the end and judge.

    Raises EnvironmentFailure (nothing may be concluded), PolicyError as the policy does, and Stopped.
    A policy whose replies can't be read has failed; that is an outcome.
    """
    control, task = environment.control, environment.task
    begun = time.monotonic()
    instruction = environment.setup()
    steps: list[Step] = []
    episode = run(
        instruction,
        environment,
        policy,
        max_steps=config.max_steps or task.max_steps,
        memory=memory,
        seed=sampling_seed,
        every_reply=config.every_reply,
    )
    outcome = Outcome.OUT_OF_STEPS
    try:
        while True:
            if control.stop.is_set():
                raise Stopped
            if time.monotonic() - begun - control.waited > config.episode_s:
                if not steps:  # nothing was asked of the policy yet
                    raise EnvironmentFailure(f"no start within {config.episode_s:g} s")
                outcome = Outcome.TIMED_OUT
                break
            steps.append(next(episode))
            control.steps = len(steps)
    except StopIteration as end:
        outcome = end.value
    except UnreadablePolicy:
        outcome = Outcome.FAILED
    finally:
        episode.close()
    verdict = environment.verdict
    if verdict is None or not verdict.done:
        verdict = environment.judge(steps[-1] if steps else None)
    return Played(instruction, tuple(steps), outcome, verdict, time.monotonic() - begun)


def environment_of(
    desktop: Desktop,
    family: TaskFamily,
    task: TaskSpec,
    seed: int,
    *,
    epoch: int,
    config: RolloutConfig,
    control: Control,
    keep: Callable[[bytes], str],
    stay: Callable[[], None],
) -> TaskEnvironment:
    """Return the environment of one episode; `keep` stores a PNG and returns its sha256.

    `stay` is called at each step and keeps the desktop ours.
    """
    inner = DesktopEnvironment(
        desktop, epoch, keep, elements=config.elements, settle=task.surface == "desktop"
    )
    return TaskEnvironment(desktop, family, task, seed, epoch, config.step_s, control, inner, stay)
