"""Memory M = (W, E): what of an episode still goes into the prompt, and how.

Working memory is the last steps; `render` shows the last `history_n` of them with their pictures.
What is older becomes one summary (episodic memory).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.dialects import frame_of
from agent.words import describe
from trajectory import Step

Summarise = Callable[[Sequence[Step]], str]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a prompt gets: the steps that stay as they are, and the rest in a few words."""

    steps: tuple[Step, ...]
    summary: str


def in_words(steps: Sequence[Step]) -> str:
    """Return the steps as one line of actions; the summary that needs no model."""
    return "; ".join(describe(step.action, frame_of(step.observation)) for step in steps)


@dataclass(frozen=True, slots=True)
class Memory:
    """Keeps the last `steps` steps; `summarise` puts the older ones in words."""

    steps: int = 50
    summarise: Summarise = in_words

    def recall(self, history: Sequence[Step]) -> Recalled:
        """Return what a prompt gets of `history` (oldest first)."""
        cut = max(len(history) - self.steps, 0)
        older = history[:cut]
        return Recalled(tuple(history[cut:]), self.summarise(older) if older else "")
