"""The one prompt format: serving, labelling and training all render a decision here.

Messages have the OpenAI shape. A picture is `{"type": "image", "sha256": ...}`: a reference, never
the bytes; the policy that talks HTTP turns it into a data URL, a trainer opens the blob.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from agent.dialects import Dialect, Frame, LossyConversion, frame_of
from agent.dialects.frame import shown
from agent.policy import PolicyRequest
from agent.words import describe, element_line, short
from trajectory import Action, Observation, Step

Message: TypeAlias = dict[str, Any]
ObservationKind: TypeAlias = Literal["elements", "screenshot"]

ELEMENTS_SYSTEM = "You control a computer. Answer with a Thought and one Action."

MAX_DONE = 5
"""How many past actions an element prompt lists."""
MAX_OUTPUT = 500
"""How many characters of a tool's output a prompt carries."""

SCREENSHOT_PROMPT = """\
You operate a graphical user interface. You are given a task, what has been done for it and \
screenshots. Do the next action that brings the task forward.

## Output Format
Thought: ...
Action: ...

## Action Space
{space}

## Note
- Write the Thought in {language}.
- In the Thought, make a small plan and end with one sentence that says the next action and names its target.

## User Instruction
{instruction}"""


def render_request(
    request: PolicyRequest,
    *,
    dialect: Dialect,
    observation_kind: ObservationKind,
    history_n: int = 5,
) -> list[Message]:
    """Return the messages of a request; its own `pictures` goes before `history_n`."""
    return render(
        request.instruction,
        request.history,
        request.observation,
        dialect=dialect,
        observation_kind=observation_kind,
        history_n=history_n if request.pictures is None else request.pictures,
        summary=request.summary,
        hint=request.hint,
    )


def pictures_of(messages: Iterable[Message]) -> list[str]:
    """Return the sha256 of every picture in the messages, in order."""
    return [
        part["sha256"]
        for message in messages
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image"
    ]


def render(
    instruction: str,
    history: Sequence[Step],
    observation: Observation,
    *,
    dialect: Dialect,
    observation_kind: ObservationKind,
    history_n: int = 5,
    summary: str = "",
    hint: str = "",
    language: str = "English",
) -> list[Message]:
    """Return the messages that ask a policy for the next step.

    `history` are the steps so far, oldest first. "elements": one short text that lists the last
    MAX_DONE actions in words (a memory of MAX_DONE steps leaves none unsaid) and at most 60 elements with names of at most 60 characters (see
    `agent.dialects.frame.shown`, `agent.words`); no picture. "screenshot": at most `history_n`
    pictures including the current one; older steps stay as the assistant's text. `summary` stands
    for steps that a memory has dropped, `hint` is what the person beside the agent says. Raises ValueError if elements are wanted and the
    observation was made without them.
    """
    if observation_kind == "elements":
        return _elements(instruction, history, observation, summary, hint)
    prompt = SCREENSHOT_PROMPT.format(
        space=dialect.space, language=language, instruction=instruction.strip()
    )
    if summary:
        prompt += f"\n\n## Earlier\n{summary}"
    if hint:
        prompt += f"\n\n## Hint\n{hint}"
    messages: list[Message] = [{"role": "user", "content": prompt}]
    first_picture = len(history) - max(history_n - 1, 0)
    for at, step in enumerate(history):
        if at >= first_picture:
            messages.append(_picture(step.observation))
        messages.append(
            {
                "role": "assistant",
                "content": _past(step, dialect, frame_of(step.observation)),
            }
        )
    messages.append(_picture(observation))
    return messages


def target_text(thought: str, action: Action, frame: Frame, dialect: Dialect) -> str:
    """Return the assistant's text for a step: what a policy is trained to write.

    The thought is put on one line, so that the text reads back. Raises LossyConversion.
    """
    return f"Thought: {' '.join(thought.split())}\nAction: {dialect.write(action, frame)}"


def _past(step: Step, dialect: Dialect, frame: Frame) -> str:
    try:
        return target_text(step.thought, step.action, frame, dialect)
    except LossyConversion:
        # What a person did may have no form in this dialect; as context, words are enough.
        return f"Thought: {' '.join(step.thought.split())}\nAction: {describe(step.action, frame)}"


def _picture(observation: Observation) -> Message:
    content: list[Message] = [{"type": "image", "sha256": observation.screenshot}]
    if observation.tool_output:
        content.append({"type": "text", "text": short(observation.tool_output, MAX_OUTPUT)})
    return {"role": "user", "content": content}


def _elements(
    instruction: str, history: Sequence[Step], observation: Observation, summary: str, hint: str
) -> list[Message]:
    if observation.elements is None:
        raise ValueError("this policy reads elements and the observation was made without them")
    lines = [f"Task: {' '.join(instruction.split())}"]
    if hint:
        lines.append(f"Hint: {short(hint, MAX_OUTPUT)}")
    if summary:
        lines.append(f"Earlier: {' '.join(summary.split())}")
    if history:
        lines.append("Done:")
        for number, step in enumerate(history[-MAX_DONE:], start=1):
            failed = f" (failed: {short(step.error)})" if step.error else ""
            done = describe(step.action, frame_of(step.observation))
            lines.append(f"{number}. {done}{failed}")
    if observation.tool_output:
        lines.append(f"Output: {short(observation.tool_output, MAX_OUTPUT)}")
    lines.append("Screen:")
    lines += [
        f"[{number}] {element_line(observation.elements[number - 1])}"
        for number in shown(observation.elements)
    ]
    return [
        {"role": "system", "content": ELEMENTS_SYSTEM},
        {"role": "user", "content": "\n".join(lines)},
    ]
