"""Episodic memory E: what the steps of an episode wrote of what came before them.

E is not kept anywhere by itself: each summary lies on the step that it was written for, once. So an
episode that is taken up again from its stored steps remembers what it remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

from trajectory import Step, Summary

Summaries = tuple[Summary, ...]


def remembered(history: Sequence[Step]) -> Summaries:
    """Return E after `history` (oldest first): all that was written, in the order of the steps."""
    kept: Summaries = ()
    for step in history:
        for summary in step.recall.written if step.recall else ():
            kept = grown(kept, summary)
    return kept


def grown(kept: Summaries, summary: Summary) -> Summaries:
    """Return E with one more summary; it stands for those whose steps it covers."""
    rest = [s for s in kept if not (summary.first <= s.first and s.last <= summary.last)]
    return tuple(sorted([*rest, summary], key=lambda s: s.first))


def as_text(kept: Sequence[Summary]) -> str:
    """Return E as a prompt has it: one line per summary; steps are counted from 1."""
    return "\n".join(_line(summary) for summary in kept)


def _line(summary: Summary) -> str:
    first, last = summary.first + 1, summary.last + 1
    steps = f"Step {first}" if first == last else f"Steps {first}-{last}"
    return f"{steps}: {summary.text}"
