"""From frozen trajectories to the rows of continual pre-training: plain loss on all their text.

UI-TARS-2 (the data flywheel) sends what V(s) refuses to the CT set. Nobody says that its actions
are right, so every step counts alike, also one that a reviewer marked as wrong; screenshots are
context. Each thought and action gets loss once, however many rows a trajectory becomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent import dialects, render
from agent.dialects import Dialect, LossyConversion, frame_of
from agent.memory import again
from agent.words import describe
from training.data.rows import NOT_KEPT, LeftOut, PromptFormat, Row, kept
from trajectory import Step, Trajectory


def texts(trajectories: Iterable[Trajectory], form: PromptFormat) -> Iterator[Row | LeftOut]:
    """Yield rows with loss on all their text.

    A reader of elements gets one row per step: its screen is in that prompt and no other. For a
    reader of screenshots the earlier turns stand in the prompt, so a row holds `history_n` steps and
    the next one begins after them. What the dialect can't write is told in words.
    """
    dialect = dialects.load(form.dialect, form.coordinates)
    size = 1 if form.observation == "elements" else max(form.history_n, 1)
    for trajectory in trajectories:
        steps = trajectory.steps
        for start in range(0, len(steps), size):
            window = steps[start : start + size]
            name = f"{trajectory.id}/{window[-1].index}"
            try:
                messages = _messages(trajectory, start, window, form, dialect)
            except (LossyConversion, ValueError) as error:
                yield LeftOut(name, str(error))
                continue
            images = render.pictures_of(messages)
            if not kept(images):
                yield LeftOut(name, NOT_KEPT)
                continue
            yield Row(name, messages, written(window[-1], dialect), images, loss="all")


def written(step: Step, dialect: Dialect) -> str:
    """Return the assistant's text of a step, in words where the dialect has no form for it."""
    frame = frame_of(step.observation)
    try:
        return render.target_text(step.thought, step.action, frame, dialect)
    except LossyConversion:
        thought = " ".join(step.thought.split())
        return f"Thought: {thought}\nAction: {describe(step.action, frame)}"


def _messages(
    trajectory: Trajectory,
    start: int,
    window: tuple[Step, ...],
    form: PromptFormat,
    dialect: Dialect,
) -> list[render.Message]:
    if form.observation == "elements":
        return render.render_request(
            again(trajectory.instruction, trajectory.steps, start),
            dialect=dialect,
            observation_kind=form.observation,
            history_n=form.history_n,
        )
    return render.render(
        trajectory.instruction,
        window[:-1],
        window[-1].observation,
        dialect=dialect,
        observation_kind=form.observation,
        history_n=len(window),
    )
