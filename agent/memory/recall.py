"""Fit the memory of an episode into a prompt: at most so many steps, at most so many tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.memory import episodic
from agent.memory.summaries import InWords, Summariser
from agent.policy import Candidate, PolicyError, PolicyRequest, Size
from trajectory import Recall, Step, Summary

MAX_SUMMARIES = 6
"""More than so many summaries, and the older half of them becomes one."""

Measure = Callable[[PolicyRequest], Size]


class OverBudget(PolicyError):
    """The instruction and the current observation alone are longer than the budget."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is asked, fitted, and what the step should keep of it."""

    request: PolicyRequest
    recall: Recall

    def record(self, candidate: Candidate) -> Recall:
        """Return what the step keeps, with what only the answer tells."""
        tokens = candidate.prompt_tokens or self.recall.prompt_tokens
        return replace(self.recall, pictures=candidate.pictures, prompt_tokens=tokens)


@dataclass(frozen=True, slots=True)
class Memory:
    """W holds at most `steps` steps; when it overflows, the `together` oldest leave at once.

    They leave for E, in the words of `summariser`. `budget` is how many tokens a prompt may have as
    `measure` (of the policy: `OpenAIPolicy.measure`) counts them, 0 for no limit. Where it is short,
    first the oldest steps leave W as far as they have no picture, then pictures go, then the other
    steps, then E loses its oldest summaries; the instruction and what is seen now always stay.
    """

    steps: int = 50
    together: int = 10
    summariser: Summariser = field(default_factory=InWords)
    budget: int = 0
    measure: Measure | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or self.together < 1:
            raise ValueError("a memory holds at least one step")
        if self.budget and self.measure is None:
            raise ValueError("a token budget needs `measure`, which counts tokens")

    def recall(self, request: PolicyRequest) -> Recalled:
        """Return `request`, whose history is the whole episode (oldest first), fitted.

        The same history gives the same W and E: nothing is kept between calls. Raises OverBudget,
        and PolicyError from `measure` and the summariser.
        """
        fitting = _Fitting(self, request)
        while len(fitting.working) > self.steps:
            fitting.leave(min(self.together, self.steps))
        tokens = fitting.fit() if self.budget else 0
        return fitting.recalled(tokens)


def again(instruction: str, steps: Sequence[Step], at: int) -> PolicyRequest:
    """Return what the policy was asked at `steps[at]`, as the step's record says.

    Without a record (a person's step): what a `Memory()` recalls, as the workbench asks.
    """
    step = steps[at]
    request = PolicyRequest(instruction, tuple(steps[:at]), step.observation)
    if step.recall is None:
        return Memory().recall(request).request
    recall = step.recall
    working = tuple(earlier for earlier in steps[:at] if earlier.index >= recall.since)
    return replace(
        request,
        history=working,
        dropped=at - len(working),
        summary=recall.episodic,
        pictures=recall.pictures or None,
    )


class _Fitting:
    """One prompt being fitted; `working` is W, `kept` is E, `text` is E as the prompt has it."""

    def __init__(self, memory: Memory, request: PolicyRequest) -> None:
        self.memory, self.request = memory, request
        self.kept = episodic.remembered(request.history)
        last = self.kept[-1].last if self.kept else -1
        self.working = tuple(step for step in request.history if step.index > last)
        self.written: episodic.Summaries = ()
        self.text = episodic.as_text(self.kept)
        self.pictures: int | None = None

    def asked(self, without: int = 0) -> PolicyRequest:
        """Return the request as it stands, less the `without` oldest steps of W."""
        working = self.working[without:]
        return replace(
            self.request,
            history=working,
            dropped=len(self.request.history) - len(working),
            summary=self.text,
            pictures=self.pictures,
        )

    def recalled(self, tokens: int) -> Recalled:
        seen = self.request.history
        # An index, not a place: what a person undid leaves a gap.
        following = seen[-1].index + 1 if seen else 0
        since = self.working[0].index if self.working else following
        return Recalled(
            self.asked(),
            Recall(since, self.pictures or 0, self.text, self.written, tokens),
        )

    def leave(self, count: int) -> None:
        """Move the `count` oldest steps of W into E."""
        steps, self.working = self.working[:count], self.working[count:]
        summarise = self.memory.summariser.summarise
        text, by = summarise(self.request.instruction, self.text, steps)
        self._write(Summary(steps[0].index, steps[-1].index, text, by))
        if len(self.kept) > MAX_SUMMARIES:
            older = self.kept[: len(self.kept) // 2 + 1]
            merge = self.memory.summariser.merge
            text, by = merge(self.request.instruction, [summary.text for summary in older])
            self._write(Summary(older[0].first, older[-1].last, text, by))
        self.text = episodic.as_text(self.kept)

    def _write(self, summary: Summary) -> None:
        self.kept = episodic.grown(self.kept, summary)
        self.written = episodic.grown(self.written, summary)

    # -- the budget --------------------------------------------------------------------------------

    def fit(self) -> int:
        """Make the prompt fit; returns its tokens."""
        size = self._size()
        shown = max(size.pictures - 1, 0)  # steps of W with their picture
        while not self._fits(size) and len(self.working) > shown:
            self.leave(self._enough(len(self.working) - shown))
            size = self._size()
        while not self._fits(size) and size.pictures > 1:
            self.pictures = size.pictures - 1
            size = self._size()
        while not self._fits(size) and self.working:
            self.leave(self._enough(len(self.working)))
            size = self._size()
        if not self._fits(size) and self.text:
            self._trim()
            size = self._size()
        if not self._fits(size):
            counted = "" if size.exact else " (estimated)"
            raise OverBudget(
                f"the instruction and the current observation have {size.tokens} tokens{counted}, "
                f"the budget is {self.memory.budget}: allow more, or show the policy less"
            )
        return size.tokens

    def _size(self, without: int = 0) -> Size:
        assert self.memory.measure is not None
        return self.memory.measure(self.asked(without))

    def _fits(self, size: Size) -> bool:
        return size.tokens <= self.memory.budget

    def _enough(self, most: int) -> int:
        """Return how many steps should leave so that the prompt fits without them, at most `most`.

        What E gains by them is not known before it is written.
        """
        count = min(self.memory.together, most)
        while count < most and not self._fits(self._size(without=count)):
            count = min(2 * count, most)
        return count

    def _trim(self) -> None:
        """Shorten the text of E until it fits: its oldest summaries go, then the end of the last."""
        kept = self.kept
        while len(kept) > 1 and not self._fits(self._size()):
            kept = kept[1:]
            self.text = episodic.as_text(kept)
        whole, fits, too_long = self.text, 0, len(self.text) + 1
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            self.text = _cut(whole, middle)
            if self._fits(self._size()):
                fits = middle
            else:
                too_long = middle
        self.text = _cut(whole, fits)


def _cut(text: str, length: int) -> str:
    return text if length >= len(text) else text[: length - 1] + "…" if length > 1 else ""
