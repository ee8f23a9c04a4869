"""What an episode is made of: Observation, Step, Outcome, Trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trajectory.actions import Action


@dataclass(frozen=True, slots=True)
class Element:
    """One thing on the screen that can be named: from the page, an accessibility tree, or OCR.

    `box` is (left, top, width, height) in pixels of the frame.
    """

    role: str
    name: str
    box: tuple[int, int, int, int]
    value: str = ""
    focused: bool = False

    @property
    def centre(self) -> tuple[int, int]:
        left, top, width, height = self.box
        return left + width // 2, top + height // 2


@dataclass(frozen=True, slots=True)
class Observation:
    """What the desktop looked like at one moment.

    `screenshot` is the sha256 of the encoded picture (the blob's name), never the bytes.
    `elements` is None where the sandbox was not asked for them, () where there are none.
    """

    screenshot: str
    width: int
    height: int
    elements: tuple[Element, ...] | None = None
    tool_output: str = ""
    url: str = ""
    captured_at: float = 0.0  # seconds since the epoch, the host's clock


class Actor(StrEnum):
    """Who chose an action."""

    AGENT = "agent"
    HUMAN = "human"
    ORACLE = "oracle"


class Outcome(StrEnum):
    """How an episode ended."""

    FINISHED = "finished"
    """The actor said that it was done; says nothing about being right."""
    FAILED = "failed"
    """The actor said that the task can't be done."""
    ENDED = "ended"
    """The task itself was over, solved or lost; the actor had not said anything."""
    ABANDONED = "abandoned"
    OUT_OF_STEPS = "out_of_steps"
    TIMED_OUT = "timed_out"
    ENV_FAILURE = "env_failure"
    """The environment broke: no reward follows from it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the policy server sampled, token for token; training uses it as is.

    `output_ids` and `output_logprobs` have the same length: one natural log-probability per token.
    """

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    output_logprobs: tuple[float, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Summary:
    """One entry of the episodic memory E: the steps `first` to `last` (indices) in words.

    `by` is who wrote it: a model's version, or "words" where no model was asked.
    """

    first: int
    last: int
    text: str
    by: str


@dataclass(frozen=True, slots=True)
class Recall:
    """What of the episode so far stood in a step's prompt: enough to render the prompt again.

    `since` is the index of the first earlier step in the working memory W; all between it and this
    step are in it. `pictures` counts the screenshots, the current one included (0: an element
    prompt). `episodic` is the text of E as the prompt had it. `written` are the summaries that were
    made for this step: E is all that were written so far, and one that covers others stands for them.
    `prompt_tokens` is how long the prompt was, 0 where the endpoint did not say.
    """

    since: int = 0
    pictures: int = 0
    episodic: str = ""
    written: tuple[Summary, ...] = ()
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One decision: what was seen, why, what was done, by whom.

    `trainable` is False for a step that stays in the context but must get no loss. `recall` is None
    where no memory chose the context: a person's step, or one from before there was one.
    """

    index: int
    observation: Observation
    thought: str
    action: Action
    actor: Actor
    model_version: str = ""
    trainable: bool = True
    error: str = ""
    sample: Sample | None = None
    recall: Recall | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One attempt at a task, from its instruction to its outcome.

    `reward` is None while nobody has verified it. `annotator` is a pseudonym, never a name.
    """

    id: str
    task: str
    instruction: str
    steps: tuple[Step, ...]
    outcome: Outcome | None = None
    reward: float | None = None
    annotator: str = ""
    source: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
