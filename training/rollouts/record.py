"""What is kept of a played episode: its trajectory in the blob store, its figures on the row."""

from __future__ import annotations

import json

from blobs import BlobStore
from sandbox.families import TaskSpec
from training.models import Episode
from training.rollouts.episodes import Result
from training.rollouts.play import Played
from training.rollouts.slots import Control
from trajectory import Trajectory, dump_lines, from_dict

NO_PICTURE = "0" * 64
"""The name of a picture that was not kept."""


def result_of(
    row: Episode, task: TaskSpec, played: Played, control: Control, store: BlobStore
) -> Result:
    """Store the trajectory of an episode and return what its row keeps; raises BlobError."""
    verdict = played.verdict
    trajectory = Trajectory(
        id=f"episode-{row.pk}-{row.claim}",
        task=task.id,
        instruction=played.instruction,
        steps=played.steps,
        outcome=played.outcome,
        reward=verdict.reward,
        source="rollout",
        metadata={
            **task.metadata(row.seed),
            "rollout": row.rollout.name,
            "deployment": row.rollout.deployment.name,
            "repeat": str(row.repeat),
            "temperature": f"{row.rollout.config.get('temperature', '')}",
            "top_p": f"{row.rollout.config.get('top_p', '')}",
        },
    )
    line = "".join(dump_lines([trajectory]))
    return Result(
        outcome=played.outcome.value,
        reward=verdict.reward,
        score=verdict.score,
        trajectory=store.put(line.encode()),
        verdict=verdict.as_dict(),
        versions=played.versions,
        steps=len(played.steps),
        seconds=played.seconds,
        policy_seconds=control.thinking,
        waited_seconds=control.waited,
    )


def read(row: Episode, store: BlobStore) -> Trajectory | None:
    """Return the trajectory of an episode, None while it has none.

    Raises BlobError, and FormatError for a line that can't be read.
    """
    if not row.trajectory:
        return None
    return from_dict(json.loads(store.get(row.trajectory)))
