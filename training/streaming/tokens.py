"""From finished episodes to the tokens that a trainer reads, with the pictures that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from agent import dialects, render
from agent.memory import again
from blobs import BlobStore, DirectoryBlobStore, open_store
from training.data.rows import NOT_KEPT, PromptFormat, kept
from training.data.stream_rows import NoSamples, TokenEpisode, of_trajectory
from training.errors import Refused
from training.models import Episode, Rollout
from training.rollouts import record
from trajectory import FormatError, Trajectory

WAY_OUT = "let a deployment of our own policy server play, which tells what it sampled"


class Unlearnable(Refused):
    """An episode gives nothing to learn from; the message names it and the way out."""


def episodes(rollout: Rollout, rows: Iterable[Episode], directory: Path) -> Iterator[TokenEpisode]:
    """Yield finished episodes of `rollout` as tokens; pictures are put into the run's `directory`.

    Raises Unlearnable, BlobError.
    """
    store, here = open_store(settings.STORAGE_URL), DirectoryBlobStore(directory)
    form = PromptFormat.of_deployment(rollout.deployment)
    for row in rows:
        yield _tokens(row, form, store, here)


def _tokens(
    row: Episode, form: PromptFormat, store: BlobStore, here: DirectoryBlobStore
) -> TokenEpisode:
    name = f"episode {row.pk} ({row})"
    if row.reward is None or row.sequence is None:
        raise Unlearnable(f"{name} has no reward: choose tasks that have a verifier")
    try:
        trajectory = record.read(row, store)
    except FormatError as error:
        raise Unlearnable(f"{name} can't be read: {error}") from error
    if trajectory is None:
        raise Unlearnable(f"{name} has no trajectory: {WAY_OUT}")
    shown = _shown(trajectory, form) if form.observation == "screenshot" else {}
    wanted = [sha for messages in shown.values() for sha in render.pictures_of(messages)]
    if not kept(wanted):
        raise Unlearnable(f"{name}: {NOT_KEPT}")
    fetch(wanted, store, here)
    try:
        return of_trajectory(
            trajectory,
            episode=row.pk,
            sequence=row.sequence,
            group=str(row),
            reward=row.reward,
            staleness=row.staleness or 0,
            messages=shown,
        )
    except NoSamples as error:
        raise Unlearnable(f"{error}: {WAY_OUT}") from error


def fetch(wanted: Iterable[str], store: BlobStore, here: DirectoryBlobStore) -> None:
    """Copy the blobs that are not here yet; raises BlobError."""
    for sha in dict.fromkeys(wanted):
        if not here.exists(sha):
            here.put(store.get(sha))


def _shown(trajectory: Trajectory, form: PromptFormat) -> dict[int, list[dict[str, Any]]]:
    """Return the messages of each step whose prompt has pictures, as the policy was asked."""
    dialect = dialects.load(form.dialect, form.coordinates)
    found = {}
    for at, step in enumerate(trajectory.steps):
        messages = render.render_request(
            again(trajectory.instruction, trajectory.steps, at),
            dialect=dialect,
            observation_kind=form.observation,
            history_n=form.history_n,
        )
        if render.pictures_of(messages):
            found[step.index] = messages
    return found
