"""What a model learns judging from: the question that a judge is asked, and the verifier's answer.

No Django here. The words around the verdict say nothing that depends on it, so that the verdict's own
token carries all of the judgement, and its probability is a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.dialects import frame_of
from agent.render import ObservationKind, pictures_of
from agent.rewards.question import has_pictures, outcome_question
from agent.words import describe, short
from trajectory import Outcome, Trajectory

WORDS = ("failure", "success")
"""The verdict of each truth, 0 and 1."""


class NoVerdict(ValueError):
    """A judge can't be asked about an episode, or nobody knows the truth; the message says why."""


def row_of(
    trajectory: Trajectory, *, truth: int, kind: ObservationKind, group: str
) -> dict[str, Any]:
    """Return one line of data.jsonl: `truth` is 0 or 1, `group` names task and seed.

    Raises NoVerdict.
    """
    if trajectory.outcome == Outcome.ENV_FAILURE:
        raise NoVerdict("the environment broke")
    if not trajectory.steps:
        raise NoVerdict("it has no step")
    if kind == "screenshot" and not has_pictures(trajectory):
        raise NoVerdict("no screenshot was kept")
    messages, token = outcome_question(trajectory, kind=kind)
    return {
        "id": trajectory.id, "messages": messages, "target": answer(trajectory, token, truth),
        "images": pictures_of(messages), "loss": True, "weight": 1.0, "truth": truth,
        "token": token, "steps": len(trajectory.steps), "group": group,
    }  # fmt: skip


def answer(trajectory: Trajectory, token: str, truth: int) -> str:
    """Return a reply in the judges' form (agent.rewards.reply) that gives the true verdict."""
    last = trajectory.steps[-1]
    done = short(describe(last.action, frame_of(last.observation)), 80)
    return (
        "Reason: judged by what was done and by what the screen shows.\n"
        f"Evidence: step {len(trajectory.steps)}: {done}\n"
        f"Verdict {token}: {WORDS[truth]}"
    )


def other(row: Mapping[str, Any]) -> str:
    """Return the reply of `row` with the opposite verdict."""
    truth = int(row["truth"])
    return str(row["target"]).removesuffix(WORDS[truth]) + WORDS[1 - truth]
