"""Several reward models that must agree: precise, at the price of abstaining often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.rewards.protocol import Judgement, RewardModel
from trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class EnsembleModel:
    """Says what all its members say, and abstains where one of them abstains or differs.

    Right for choosing data; as a reward it would leave out the episodes that are hard to judge.
    """

    members: tuple[RewardModel, ...]

    def __post_init__(self) -> None:
        if len(self.members) < 2:
            raise ValueError("an ensemble needs at least two members")

    def judge(self, trajectory: Trajectory, *, references: Sequence[str] = ()) -> Judgement:
        """Ask every member, so that what each said is kept. Raises PolicyError."""
        said = [member.judge(trajectory, references=references) for member in self.members]
        rewards = {judgement.reward for judgement in said}
        reward = rewards.pop() if len(rewards) == 1 else None
        spoken = ", ".join({1: "success", 0: "failure", None: "abstains"}[j.reward] for j in said)
        return Judgement(
            reward,
            spoken if reward is None else said[0].reason,
            tuple(evidence for judgement in said for evidence in judgement.evidence),
            "\n---\n".join(judgement.raw for judgement in said),
            "+".join(judgement.version or "?" for judgement in said),
        )
