"""What a run of kind orm learns from: episodes and sessions whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.conf import settings

from agent.render import ObservationKind
from annotation.recordings import thoughts
from blobs import open_store
from training.data import datasets
from training.data.verdict_rows import NoVerdict, row_of
from training.errors import Refused
from training.evaluations.results import SOLVED
from training.models import Episode, Rollout, Run
from training.rollouts import record
from trajectory import Trajectory


def lines(run: Run, *, kind: ObservationKind) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines of data.jsonl, and (id, reason) of what can't be judged.

    Of `run.rollout` the episodes that a program has verified, of `run.dataset` the trajectories with
    a reward. Raises Refused for a rollout that evaluates: what a judge is tested on, it must not know.
    """
    good: list[str] = []
    lost: list[tuple[str, str]] = []
    for trajectory, reward, group in _labelled(run):
        truth = int(reward >= SOLVED)
        try:
            row = row_of(trajectory, truth=truth, kind=kind, group=group)
        except NoVerdict as error:
            lost.append((trajectory.id, str(error)))
        else:
            good.append(json.dumps(row, ensure_ascii=False) + "\n")
    return good, lost


def _labelled(run: Run) -> Iterator[tuple[Trajectory, float, str]]:
    if run.rollout is not None:
        if run.rollout.purpose == Rollout.Purpose.EVALUATE:
            raise Refused(f"{run.rollout.name} evaluates: choose a rollout that collects")
        store = open_store(settings.STORAGE_URL)
        done = run.rollout.episodes.filter(state=Episode.State.DONE).exclude(reward=None)
        for row in done.exclude(trajectory="").order_by("pk").iterator(chunk_size=200):
            if (trajectory := record.read(row, store)) is not None:
                yield trajectory, row.reward, f"{row.family}/{row.task}#{row.seed}"
    if run.dataset is not None:
        for trajectory in datasets.trajectories(run.dataset):
            if trajectory.reward is not None:
                seed = trajectory.metadata.get("seed", thoughts.origin_of(trajectory))
                yield trajectory, trajectory.reward, f"{trajectory.task}#{seed}"
