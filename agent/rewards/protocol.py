"""What judges an episode: the RewardModel protocol and its answer. No Django here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from trajectory import Trajectory

Reward: TypeAlias = Literal[0, 1]


class Evidence(NamedTuple):
    """What a judgement rests on: a step, counted from 1, and what was seen there."""

    step: int
    seen: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an episode succeeded: 1, 0, or None where the model abstains.

    `error` says why an answer could not be read (then `reward` is None); it is empty where a model
    abstains knowingly. `raw` is what a model wrote, to the letter; `version` is what answered.
    """

    reward: Reward | None
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    raw: str = ""
    version: str = ""
    error: str = ""

    @property
    def unreadable(self) -> bool:
        return bool(self.error)


class RewardModel(Protocol):
    """Judges finished episodes. The same episode gives the same judgement, as far as its model does."""

    def judge(self, trajectory: Trajectory, *, references: Sequence[str] = ()) -> Judgement:
        """Judge one episode; `references` are the right answers, where the task asks a question.

        Abstains rather than guesses. Raises PolicyError where a model gave no reply at all: that says
        nothing about the episode.
        """
        ...
