"""Accepted sessions as training files that other trainers read as they are.

A folder with `images/` and, beside it, files that refer to it by relative paths:

- `uitars.jsonl`: UI-TARS rows, one per step: messages with `loss_mask`, 1 on the last turn only;
- `steps.jsonl`: one row per step, `<image>` in the text, `loss` true on the last turn only
  (LLaMA-Factory, ms-swift);
- `trajectories.jsonl`: one row per session, `loss` false on wrong and redundant steps (ms-swift);
- `trl.jsonl`: prompt and completion with structured content (TRL);
- `dataset_info.json`: how LLaMA-Factory reads the first three.

Rows of a recording say in `thoughts` where each thought is from, one word per step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from agent import dialects
from agent.dialects import Dialect, LossyConversion, frame_of
from agent.memory import again
from agent.policy import PolicyRequest
from agent.render import Message, ObservationKind, render_request, target_text
from annotation.data.reviews import NoTrajectory, trajectory_of
from annotation.models import Session
from annotation.recordings import thoughts
from annotation.session import pictures
from blobs.store import Damaged, MissingBlob
from trajectory import Step, Trajectory

FILES = ("uitars.jsonl", "steps.jsonl", "trajectories.jsonl", "trl.jsonl")


@dataclass(slots=True)
class Exported:
    """What was written, and in words what was left out and why."""

    sessions: int = 0
    steps: int = 0
    pictures: int = 0
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Format:
    """How prompts are written; the same as what a Deployment of that kind would be asked."""

    dialect: Dialect = field(default_factory=lambda: dialects.load("box", "thousandth"))
    observation: ObservationKind = "screenshot"
    history_n: int = 5
    synthesized: bool = True  # whether thoughts of recordings that a model made up are written


def export(sessions: Iterable[Session], folder: Path, *, format: Format | None = None) -> Exported:
    """Write the sessions' trajectories to `folder`, which is made if it isn't there.

    A step that must get no loss, or that the dialect can't write, gives no row of its own and
    stays in the context of the others. Names are pseudonyms; pictures are copied once.
    """
    format = format or Format()
    done = Exported()
    (folder / "images").mkdir(parents=True, exist_ok=True)
    with (
        open(folder / "uitars.jsonl", "w") as uitars,
        open(folder / "steps.jsonl", "w") as steps,
        open(folder / "trajectories.jsonl", "w") as trajectories,
        open(folder / "trl.jsonl", "w") as trl,
    ):
        for session in sessions:
            try:
                trajectory = trajectory_of(session)
            except NoTrajectory as error:
                done.left_out.append(str(error))
                continue
            if not format.synthesized:
                trajectory = thoughts.without_synthesized(trajectory)
            done.sessions += 1
            for index, step in enumerate(trajectory.steps):
                row = _step_row(trajectory, index, step, format, done)
                if row is not None and _copied(row, folder, done, f"{trajectory.id} step {index}"):
                    name = f"{trajectory.id}-{step.index}"
                    _write(uitars, _uitars(name, trajectory, row))
                    _write(
                        steps,
                        _tagged(name, trajectory, row, [False] * (len(row) - 1) + [True]),
                    )
                    _write(trl, _structured(row))
                    done.steps += 1
            whole, losses = _whole(trajectory, format)
            if any(losses) and _copied(whole, folder, done, trajectory.id):
                _write(trajectories, _tagged(trajectory.id, trajectory, whole, losses))
    info = {Path(name).stem: _dataset_info(name) for name in FILES[:3]}
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2) + "\n")
    return done


# -- rows ------------------------------------------------------------------------------------------


def _step_row(
    trajectory: Trajectory, index: int, step: Step, format: Format, done: Exported
) -> list[Message] | None:
    """Return the messages that end with this step, or None where it can't be trained on."""
    where = f"{trajectory.id} step {step.index}"
    if not step.trainable:
        done.left_out.append(f"{where}: gets no loss")
        return None
    try:
        target = _target(step, format)
        prompt = _prompt(again(trajectory.instruction, trajectory.steps, index), format)
    except (LossyConversion, ValueError) as error:
        done.left_out.append(f"{where}: {error}")
        return None
    return [*prompt, target]


def _whole(trajectory: Trajectory, format: Format) -> tuple[list[Message], list[bool]]:
    """Return one conversation of all steps, each with its picture, and which turns get a loss."""
    if format.observation == "elements":
        return [], []  # an element prompt states the history anew at every step
    last = len(trajectory.steps) - 1
    steps = trajectory.steps
    whole = PolicyRequest(
        trajectory.instruction, steps[:last], steps[last].observation, pictures=len(steps)
    )
    messages = _prompt(whole, format)
    losses: list[bool] = []
    acted = iter(steps)
    for message in messages:
        trainable = message["role"] == "assistant" and _learnable(next(acted), format)
        losses.append(trainable)
    try:
        target = _target(trajectory.steps[last], format)
    except LossyConversion:
        return messages[:-1], losses[:-1]  # without the picture that nothing answers
    return [*messages, target], [*losses, trajectory.steps[last].trainable]


def _learnable(step: Step, format: Format) -> bool:
    try:
        format.dialect.write(step.action, frame_of(step.observation))
    except LossyConversion:
        return False
    return step.trainable


def _prompt(request: PolicyRequest, format: Format) -> list[Message]:
    return _merged(
        render_request(
            request,
            dialect=format.dialect,
            observation_kind=format.observation,
            history_n=format.history_n,
        )
    )


def _target(step: Step, format: Format) -> Message:
    frame = frame_of(step.observation)
    text = target_text(step.thought, step.action, frame, format.dialect)
    return {"role": "assistant", "content": text}


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Join neighbours of one role: trainers want user and assistant to alternate."""
    merged: list[Message] = []
    for message in messages:
        parts = _parts(message)
        if merged and merged[-1]["role"] == message["role"] != "assistant":
            merged[-1]["content"].extend(parts)
        else:
            merged.append({"role": message["role"], "content": list(parts)})
    return merged


def _parts(message: Message) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


# -- shapes ----------------------------------------------------------------------------------------


def _tagged(
    name: str,
    trajectory: Trajectory,
    messages: Sequence[Message],
    losses: Sequence[bool],
) -> dict[str, Any]:
    """Text with <image> where a picture stands: LLaMA-Factory and ms-swift."""
    return {
        **_about(name, trajectory),
        "messages": [
            {"role": m["role"], "content": _flat(m), "loss": loss}
            for m, loss in zip(messages, losses, strict=True)
        ],
        "images": _images(messages),
    }


def _uitars(name: str, trajectory: Trajectory, messages: Sequence[Message]) -> dict[str, Any]:
    last = len(messages) - 1
    return {
        **_about(name, trajectory),
        "messages": [
            {"role": m["role"], "content": _flat(m), "loss_mask": int(at == last)}
            for at, m in enumerate(messages)
        ],
        "images": _images(messages),
    }


def _structured(messages: Sequence[Message]) -> dict[str, Any]:
    """Prompt and completion with typed parts: TRL takes the loss on the completion only."""
    turns = [
        {
            "role": m["role"],
            "content": [
                {"type": "image", "text": None}
                if part["type"] == "image"
                else {"type": "text", "text": part["text"]}
                for part in _parts(m)
            ],
        }
        for m in messages
    ]
    return {"prompt": turns[:-1], "completion": turns[-1:], "images": _images(messages)}


def _about(name: str, trajectory: Trajectory) -> dict[str, Any]:
    about = {"id": name, "task": trajectory.task, "annotator": trajectory.annotator}
    whose = trajectory.metadata.get("thoughts")
    return about if whose is None else {**about, "thoughts": whose}


def _flat(message: Message) -> str:
    texts = ["<image>" if p["type"] == "image" else p["text"] for p in _parts(message)]
    return "\n".join(texts)


def _shas(messages: Sequence[Message]) -> list[str]:
    return [p["sha256"] for m in messages for p in _parts(m) if p["type"] == "image"]


def _images(messages: Sequence[Message]) -> list[str]:
    return [f"images/{sha}.png" for sha in _shas(messages)]


def _copied(messages: Sequence[Message], folder: Path, done: Exported, what: str) -> bool:
    """Write the pictures that are not there yet; False, and said, where one of them is gone."""
    for sha in _shas(messages):
        target = folder / "images" / f"{sha}.png"
        if not target.exists():
            try:
                target.write_bytes(pictures.read(sha))
            except (MissingBlob, Damaged) as gone:
                done.left_out.append(f"{what}: {gone}")
                return False
            done.pictures += 1
    return True


def _write(file: TextIO, row: dict[str, Any]) -> None:
    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _dataset_info(name: str) -> dict[str, Any]:
    return {
        "file_name": name,
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": "user",
            "assistant_tag": "assistant",
            "system_tag": "system",
        },
    }
