"""From frozen trajectories to the rows that a trainer reads, in the one prompt format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from agent import dialects, render
from agent.dialects import Coordinates, LossyConversion, frame_of
from agent.memory import again
from trajectory import Trajectory

if TYPE_CHECKING:  # rows are also made where there is no Django: training.box
    from agent.models import Deployment

NOT_KEPT = "it was played without keeping screenshots, which the policy reads"


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """What a policy reads and how it writes: decides how a step becomes text."""

    dialect: Literal["box", "point", "element"]
    observation: Literal["elements", "screenshot"]
    coordinates: Coordinates | None = None
    history_n: int = 5  # screenshots in the context, the current one included

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> PromptFormat:
        """Return what a checkpoint's tandem.json says; raises KeyError naming what it lacks."""
        known = {name: manifest[name] for name in ("coordinates", "history_n") if name in manifest}
        return cls(dialect=manifest["dialect"], observation=manifest["observation"], **known)

    @classmethod
    def of_deployment(cls, deployment: Deployment) -> PromptFormat:
        """Return what a deployment asks its policy with."""
        return cls(
            dialect=deployment.dialect,
            observation=deployment.reads,
            coordinates=deployment.coordinates,
            history_n=deployment.history_n,
        )

    def to_json(self) -> dict[str, Any]:
        """Return what a run directory and a manifest keep."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Row:
    """One training example: the prompt, and the only text that gets loss.

    `loss` is "all" where the text of the prompt gets it too (continual pre-training: training.data.texts).
    """

    id: str  # trajectory/step index
    messages: list[render.Message]
    target: str
    images: list[str]  # sha256, in the order of the messages
    loss: bool | Literal["all"] = True
    weight: float = 1.0
    source: str = ""  # the dataset's name, where a run mixes several

    def to_line(self) -> str:
        """Return one line of data.jsonl, with its newline."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A step that gives no row, and why."""

    id: str
    reason: str


def rows(trajectories: Iterable[Trajectory], form: PromptFormat) -> Iterator[Row | LeftOut]:
    """Yield one row per step that may be trained on, with the context that its policy was shown.

    Where the step has no record of that: with what a default Memory recalls of all earlier steps.
    A step that is not trainable stays in the context of later ones. One that the dialect can't
    express, or that lacks what the policy reads, is named with its reason.
    """
    dialect = dialects.load(form.dialect, form.coordinates)
    for trajectory in trajectories:
        for at, step in enumerate(trajectory.steps):
            name = f"{trajectory.id}/{step.index}"
            if not step.trainable:
                yield LeftOut(name, "marked as not to be learnt")
                continue
            try:
                target = render.target_text(
                    step.thought, step.action, frame_of(step.observation), dialect
                )
                messages = render.render_request(
                    again(trajectory.instruction, trajectory.steps, at),
                    dialect=dialect,
                    observation_kind=form.observation,
                    history_n=form.history_n,
                )
            except (LossyConversion, ValueError) as error:
                yield LeftOut(name, str(error))
                continue
            images = render.pictures_of(messages)
            if not kept(images):
                yield LeftOut(name, NOT_KEPT)
                continue
            yield Row(name, messages, target, images)


def kept(images: Iterable[str]) -> bool:
    """Whether all pictures were kept: an episode for readers of elements may go without."""
    return all(sha.strip("0") for sha in images)
