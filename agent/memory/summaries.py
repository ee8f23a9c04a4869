"""Who writes the summaries of episodic memory: a rule that needs no model, or the model itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from agent.dialects import frame_of
from agent.words import describe, short
from trajectory import Step

MAX_SUMMARY = 600
"""How many characters a summary has at most."""

ANSWER_TOKENS = 200

Ask = Callable[[list[dict[str, Any]], int], tuple[str, str]]
"""(messages, tokens at most) -> (the answer, the version that gave it); raises PolicyError."""


class Summariser(Protocol):
    """Puts steps in words when they leave the working memory."""

    def summarise(self, instruction: str, earlier: str, steps: Sequence[Step]) -> tuple[str, str]:
        """Return what `steps` were for and what came of them, and who says so.

        At most MAX_SUMMARY characters, on one line; `earlier` is E so far. Raises PolicyError.
        """
        ...

    def merge(self, instruction: str, summaries: Sequence[str]) -> tuple[str, str]:
        """Return summaries that follow one another as one, and who says so; raises PolicyError."""
        ...


class InWords:
    """States the actions, what failed and what was said first; the summary that needs no model."""

    def summarise(self, instruction: str, earlier: str, steps: Sequence[Step]) -> tuple[str, str]:
        done = (_done(step) for step in steps)
        runs = ((what, len(list(same))) for what, same in groupby(done))
        words = "; ".join(what if n == 1 else f"{what} ({n} times)" for what, n in runs)
        return short(words, MAX_SUMMARY), "words"

    def merge(self, instruction: str, summaries: Sequence[str]) -> tuple[str, str]:
        share = (MAX_SUMMARY - 2 * len(summaries)) // len(summaries)
        return "; ".join(short(summary, share) for summary in summaries), "words"


WANTED = (
    "Summarise this part of the work in at most three sentences: what was intended, what was done, "
    "what came of it. Keep names, numbers and texts that may be needed later. Answer with the "
    "summary only."
)


@dataclass(frozen=True, slots=True)
class ByChat:
    """Has a chat endpoint write the summaries: the model that acts, or another one.

    An empty answer is replaced by InWords, and says so by its author.
    """

    ask: Ask

    def summarise(self, instruction: str, earlier: str, steps: Sequence[Step]) -> tuple[str, str]:
        lines = [f"Task: {' '.join(instruction.split())}"]
        if earlier:
            lines.append(f"Before:\n{earlier}")
        lines.append("Steps:")
        for step in steps:
            lines.append(f"{step.index + 1}. {short(step.thought, 200)} -> {_done(step)}")
            if step.observation.tool_output:
                lines.append(f"   seen: {short(step.observation.tool_output, 200)}")
        return self._answer(lines) or InWords().summarise(instruction, earlier, steps)

    def merge(self, instruction: str, summaries: Sequence[str]) -> tuple[str, str]:
        lines = [f"Task: {' '.join(instruction.split())}", "Parts:", *summaries]
        return self._answer(lines) or InWords().merge(instruction, summaries)

    def _answer(self, lines: Sequence[str]) -> tuple[str, str] | None:
        content = "\n".join([*lines, "", WANTED])
        said, version = self.ask([{"role": "user", "content": content}], ANSWER_TOKENS)
        text = short(said, MAX_SUMMARY)
        return (text, version) if text else None


def _done(step: Step) -> str:
    what = describe(step.action, frame_of(step.observation))
    return f"{what} (failed: {short(step.error)})" if step.error else what
