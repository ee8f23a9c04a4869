"""What decides: the Policy protocol, what it is asked and what it answers. No Django here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trajectory import Action, Observation, Sample, Step


class PolicyError(Exception):
    """A policy gave no answer; subclasses name the boundary that broke."""


class PolicyUnreachable(PolicyError):
    """Nothing answers at the endpoint, or not in time."""


class PolicyBusy(PolicyError):
    """The endpoint kept refusing for now (429, 503)."""


class PolicyRefused(PolicyError):
    """The endpoint does not accept the request; asking again would not help."""


class PolicyMisconfigured(PolicyError):
    """A deployment can't be turned into a policy; the message names the field."""


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """One decision to take: the task, the steps so far (oldest first), and what is seen now.

    `hint` is what the person beside the agent says about this step; `summary` stands for the
    `dropped` steps that a memory has taken from the beginning of `history`. `pictures` is how many
    screenshots the prompt shows, the current one included; None: as many as the policy is used to.
    """

    instruction: str
    history: tuple[Step, ...]
    observation: Observation
    hint: str = ""
    summary: str = ""
    seed: int | None = None
    dropped: int = 0
    pictures: int | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """How long a request's prompt is; `exact` is False for an estimate, made to be too high."""

    tokens: int
    pictures: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible step. `action` is None where the reply `raw` can't be read; `error` says why.

    `more` are actions that the same reply wants afterwards. `version` is the model that answered;
    `sample` is what it sampled, where the endpoint tells. `pictures` and `prompt_tokens` are what
    its prompt had, 0 where that is unknown.
    """

    thought: str
    action: Action | None
    raw: str
    error: str = ""
    sample: Sample | None = None
    version: str = ""
    more: tuple[Action, ...] = ()
    pictures: int = 0
    prompt_tokens: int = 0


class Policy(Protocol):
    """Decides on a next step."""

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return 1 to `k` candidates, the most likely first, no two alike.

        A reply that can't be read is a candidate with an error. Raises PolicyError if there is no
        reply at all.
        """
        ...


def distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates without repetitions of (thought, action, raw if unreadable), in order."""
    kept: dict[object, Candidate] = {}
    for candidate in candidates:
        key = (candidate.thought, candidate.action, "" if candidate.action else candidate.raw)
        kept.setdefault(key, candidate)
    return list(kept.values())


def varied(candidates: list[Candidate], k: int) -> list[Candidate]:
    """Return at most `k` distinct candidates, those first that do something that none before does.

    What can't be read comes last: a person chooses between actions.
    """
    actions: set[object] = set()
    new, said_otherwise, unreadable = [], [], []
    for candidate in distinct(candidates):
        if candidate.action is None:
            unreadable.append(candidate)
        elif candidate.action in actions:
            said_otherwise.append(candidate)
        else:
            actions.add(candidate.action)
            new.append(candidate)
    return [*new, *said_otherwise, *unreadable][:k]
