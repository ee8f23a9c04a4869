"""A model that reads the whole episode and says whether it succeeded: an outcome reward model.

After UI-TARS-2 (arXiv 2509.02544, section 2.5): the full history in words and the last five screenshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.render import ObservationKind
from agent.rewards.chat import Chat
from agent.rewards.protocol import Judgement, Reward
from agent.rewards.question import has_pictures, outcome_question
from agent.rewards.reply import Unreadable, read
from trajectory import Outcome, Trajectory

WORDS = ("success", "failure", "unsure")
REWARDS: dict[str, Reward | None] = {"success": 1, "failure": 0, "unsure": None}


@dataclass(frozen=True, slots=True)
class GenerativeModel:
    """Asks `chat` once, at temperature 0; what is not in the form asked for is no judgement."""

    chat: Chat
    observation_kind: ObservationKind = "screenshot"

    def judge(self, trajectory: Trajectory, *, references: Sequence[str] = ()) -> Judgement:
        """Judge an episode by its record. Raises PolicyError, and what opening a picture raises."""
        if trajectory.outcome == Outcome.ENV_FAILURE:
            return Judgement(None, "the environment broke")
        if not trajectory.steps:
            return Judgement(None, "the episode has no step")
        if self.observation_kind == "screenshot" and not has_pictures(trajectory):
            return Judgement(None, "no screenshot was kept of this episode")
        messages, token = outcome_question(trajectory, kind=self.observation_kind)
        said = self.chat.say(messages)
        try:
            reply = read(said.text, token=token, words=WORDS, steps=len(trajectory.steps))
        except Unreadable as error:
            return Judgement(None, raw=said.text, version=said.version, error=str(error))
        return Judgement(REWARDS[reply.word], reply.reason, reply.evidence, said.text, said.version)
