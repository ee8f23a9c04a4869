"""The verdict that a program gave while the computer was still there: the truth, where it exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.rewards.protocol import Evidence, Judgement
from trajectory import Outcome, Trajectory


@dataclass(frozen=True, slots=True)
class VerifierModel:
    """Gives 1 for the full reward, 0 for any less; abstains where nobody verified."""

    def judge(self, trajectory: Trajectory, *, references: Sequence[str] = ()) -> Judgement:
        if trajectory.outcome == Outcome.ENV_FAILURE:
            return Judgement(None, "the environment broke", version="verifier")
        if trajectory.reward is None:
            return Judgement(None, "nobody verified this episode", version="verifier")
        full = trajectory.reward >= 1
        reason = f"the verifier gave {trajectory.reward:g}"
        evidence = (Evidence(len(trajectory.steps), reason),) if trajectory.steps else ()
        return Judgement(1 if full else 0, reason, evidence, version="verifier")
