"""The agent by itself: observe, think, act, until it says that it is done. No database, no Django.

Whoever drives the generator stores the steps; the loop only yields them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from agent.memory import Memory
from agent.policy import Candidate, Policy, PolicyError, PolicyRequest
from trajectory import Action, Actor, Fail, Finish, Observation, Outcome, Step, Wait, is_terminal

TRIES = 3
"""How often a policy is asked again for a reply that can be read."""

UNREADABLE = "the reply can't be read"
"""How the error of a step begins whose reply was no action."""


class EnvironmentFailure(Exception):
    """The computer broke: the episode says nothing about the policy (Outcome.ENV_FAILURE)."""


class ActionRefused(Exception):
    """The computer did not do an action and is fine; the policy is told and goes on."""


class Ended(Exception):
    """The action was done and the task itself is over with it, whatever came of it."""


class UnreadablePolicy(PolicyError):
    """None of the replies to one request could be read."""


class Environment(Protocol):
    """What the loop needs of a computer."""

    def observe(self) -> Observation:
        """Return what is on the screen once it is still; raises EnvironmentFailure."""
        ...

    def act(self, action: Action) -> None:
        """Do one action; raises ActionRefused, Ended, EnvironmentFailure."""
        ...


def run(
    instruction: str,
    environment: Environment,
    policy: Policy,
    *,
    max_steps: int,
    memory: Memory | None = None,
    seed: int | None = None,
    every_reply: bool = False,
) -> Generator[Step, None, Outcome]:
    """Yield one step per decision, after it was done; return how the episode ended.

    With `every_reply` the first reply counts, also one that can't be read: such a step waits, and
    its error begins with UNREADABLE. What a policy learns from must be what it sampled.

    The last step is Finish or Fail unless `max_steps` ran out or the task ended by itself. Raises
    EnvironmentFailure and PolicyError as they come: neither is an outcome of the policy's doing.
    """
    memory = memory or Memory()
    history: list[Step] = []
    for index in range(max_steps):
        observation = environment.observe()
        request = PolicyRequest(
            instruction,
            tuple(history),
            observation,
            seed=None if seed is None else seed + index,
        )
        recalled = memory.recall(request)
        candidate, error = _decide(policy, recalled.request, again=not every_reply)
        action, ended = candidate.action or Wait(duration_ms=0), False
        if not is_terminal(action) and not error:
            try:
                environment.act(action)
            except ActionRefused as refusal:
                error = str(refusal)
            except Ended:
                ended = True
        step = Step(
            index=index,
            observation=observation,
            thought=candidate.thought,
            action=action,
            actor=Actor.AGENT,
            model_version=candidate.version,
            error=error,
            sample=candidate.sample,
            recall=recalled.record(candidate),
        )
        history.append(step)
        yield step
        if ended:
            return Outcome.ENDED
        match action:
            case Finish():
                return Outcome.FINISHED
            case Fail():
                return Outcome.FAILED
    return Outcome.OUT_OF_STEPS


def _decide(policy: Policy, request: PolicyRequest, *, again: bool) -> tuple[Candidate, str]:
    """Return the first candidate that can be read, and no error; asks `again` for more, then raises.

    Without asking again: the first candidate, and what is wrong with it.
    """
    candidates: list[Candidate] = []
    for attempt in range(1, TRIES + 1):
        # The first answer may be greedy and stay the same: more candidates, another chance.
        candidates = policy.propose(request, attempt)
        for candidate in candidates:
            if candidate.action is not None:
                return candidate, ""
            if not again:
                return candidate, f"{UNREADABLE}: {candidate.error}"
    raise UnreadablePolicy(f"no reply could be read: {candidates[0].error}")
