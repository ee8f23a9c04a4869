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
class Step:
    """One decision: what was seen, why, what was done, by whom.

    `trainable` is False for a step that stays in the context but must get no loss.
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
