"""An answer against the right one: by rules first, then by a model, where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.rewards.chat import Chat
from agent.rewards.protocol import Evidence, Judgement, Reward
from agent.rewards.question import answer_question, final_answer
from agent.rewards.reply import Unreadable, read
from sandbox.answers import matches
from trajectory import Outcome, Trajectory

WORDS = ("same", "different", "unsure")
REWARDS: dict[str, Reward | None] = {"same": 1, "different": 0, "unsure": None}
RULES_VERSION = "answers-2"
"""Of the normalisation; another one may call other answers equal."""


@dataclass(frozen=True, slots=True)
class ReferenceModel:
    """Compares what Finish said with the references. Without a `chat` only the rules speak: 1 or 0."""

    chat: Chat | None = None

    def judge(self, trajectory: Trajectory, *, references: Sequence[str] = ()) -> Judgement:
        """Judge the answer of an episode; abstains without references. Raises PolicyError."""
        if trajectory.outcome == Outcome.ENV_FAILURE:
            return Judgement(None, "the environment broke", version=RULES_VERSION)
        if not references:
            return Judgement(None, "the task has no reference answer", version=RULES_VERSION)
        answer = final_answer(trajectory)
        if not answer.strip():
            return Judgement(0, "no answer was given", version=RULES_VERSION)
        evidence = (Evidence(len(trajectory.steps), f"answered {answer!r}"),)
        if matches(answer, references):
            return Judgement(1, "the same by the rules", evidence, version=RULES_VERSION)
        if self.chat is None:
            return Judgement(0, "another answer by the rules", evidence, version=RULES_VERSION)
        messages, token = answer_question(trajectory.instruction, answer, references)
        said = self.chat.say(messages)
        try:
            reply = read(said.text, token=token, words=WORDS)
        except Unreadable as error:
            return Judgement(None, raw=said.text, version=said.version, error=str(error))
        return Judgement(REWARDS[reply.word], reply.reason, evidence, said.text, said.version)
