"""Rows as values: what the policy, the exports and the reviewers' page read."""

from __future__ import annotations

import dataclasses
from typing import Any

import trajectory
from annotation.models import Session, Step
from trajectory import Sample


def step_value(row: Step, *, sample: Sample | None = None) -> trajectory.Step:
    """Return a step row as a trajectory.Step."""
    return trajectory.Step(
        index=row.index,
        observation=trajectory.observation_from_dict(row.observation),
        thought=row.thought,
        action=trajectory.action_from_dict(row.action),
        actor=trajectory.Actor(row.actor),
        model_version=row.model_version,
        trainable=row.trainable,
        error=row.error,
        sample=sample,
    )


def history(session: Session) -> list[trajectory.Step]:
    """Return what was done so far, oldest first."""
    return [step_value(row) for row in session.steps.exclude(state=Step.State.CHOSEN)]


def last_output(session: Session) -> str:
    """Return what the newest step printed, if it was a tool."""
    newest = session.steps.order_by("-index").values_list("output", flat=True).first()
    return newest or ""


def sample_record(sample: Sample) -> dict[str, Any]:
    """Return a sample as JSON: token ids and log-probabilities as they were."""
    return dataclasses.asdict(sample)


def sample_value(record: dict[str, Any] | None) -> Sample | None:
    """Return a stored sample."""
    if record is None:
        return None
    return Sample(
        prompt_ids=tuple(record["prompt_ids"]),
        output_ids=tuple(record["output_ids"]),
        output_logprobs=tuple(record["output_logprobs"]),
        version=record["version"],
    )
