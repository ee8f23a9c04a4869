"""Thoughts by a model for steps about which nothing was said: marked as such, never mixed up with spoken ones.

The model sees what its person saw before the action: that picture, the action, the thoughts before
it. Neither a later picture nor a later thought is given, so it can't know what came of the action.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent import deployments
from agent.policy import PolicyBusy, PolicyError, PolicyUnreachable
from agent.render import Message
from agent.rewards.chat import Chat
from annotation.hand import commands
from annotation.models import Project, Recording, RecordingStep
from annotation.session import pictures
from blobs import BlobError

ASK = """A person did one action on a computer and said nothing about it. You see their screen from before the \
action. Write the thought that leads to it: one or two sentences, first person, present tense, in the language of \
the thoughts before it or else of the task. Say what on the screen and in the task is the reason, and what is done \
next. Nobody knows yet what the action brings: do not say, hint or assume how the screen looks after it or whether \
it succeeds. Answer with the sentences alone.

Task: {task}
Thoughts before it:
{before}
Action, in pixels of the picture of {size}: {action}
On: {element}"""
BEFORE = 3  # thoughts that are given along
LONGEST = 600  # characters; more is no thought beside one action


def synthesize(recording: Recording, steps: Sequence[RecordingStep]) -> None:
    """Write a thought, in place, for every step that has none, where the project chose a synthesizer.

    A step that gets none says in `unthought` why; an endpoint that is away is not asked again for the rest.
    """
    row = Project.objects.select_related("synthesizer").filter(pk=1).first()
    silent = [at for at, step in enumerate(steps) if not step.thought]
    if row is None or row.synthesizer is None or not silent:
        return
    away = ""
    try:
        model = deployments.chat(row.synthesizer, pictures=pictures.read)
    except PolicyError as error:
        away = str(error)
    for at in silent:
        step = steps[at]
        if not step.screenshot:
            step.unthought = "there is no picture from before it"
            continue
        if not away:
            try:
                step.unthought = _write(recording, steps[:at], step, model)
                continue
            except (PolicyUnreachable, PolicyBusy, BlobError) as error:
                away = str(error)
            except PolicyError as error:
                step.unthought = f"no thought was synthesized: {error}"[:300]
                continue
        step.unthought = f"no thought was synthesized: {away}"[:300]


def _write(
    recording: Recording, before: Sequence[RecordingStep], step: RecordingStep, model: Chat
) -> str:
    """Write one thought; returns why the answer was not taken. Raises PolicyError."""
    said = model.say([{"role": "user", "content": _question(recording, before, step)}])
    text = " ".join(said.text.replace("\0", "").split())
    if not text:
        return "no thought was synthesized: the model answered nothing"
    if len(text) > LONGEST:
        return f"no thought was synthesized: the model wrote {len(text)} characters"
    step.thought, step.model_version = text, said.version[:100]
    step.provenance = RecordingStep.Provenance.SYNTHESIZED
    return ""


def _question(
    recording: Recording, before: Sequence[RecordingStep], step: RecordingStep
) -> list[Message]:
    element = step.element or {}
    thoughts = [one.thought for one in before if one.thought][-BEFORE:]
    words = ASK.format(
        task=recording.instruction or recording.title or "work of one's own choice",
        before="\n".join(f"- {thought}" for thought in thoughts) or "- none",
        action=commands.describe(step.action)[:1000],
        size=f"{step.width} by {step.height}",
        element=f"{element.get('role', '')} {element.get('name', '')}".strip() or "unknown",
    )
    return [{"type": "image", "sha256": step.screenshot}, {"type": "text", "text": words}]
