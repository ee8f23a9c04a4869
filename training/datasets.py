"""Verbs of Dataset: freezing sessions into one hashed file, and reading it back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from annotation import reviews
from blobs import Damaged, open_store
from training.errors import EmptyDataset, NameTaken
from training.models import Dataset, DatasetEntry
from training.selection import Filters, routed
from trajectory import Trajectory, dump_lines, load_lines


def freeze(*, name: str, pool: str, filters: Filters, by: User | None) -> Dataset:
    """Freeze every session that V(s) sends to `pool` into a dataset.

    The file holds one trajectory per line in the order of the sessions; the same sessions with the
    same corrections give the same sha256. Raises EmptyDataset where nothing would be in it and
    NameTaken; a session that is left out is listed with its reason.
    """
    if Dataset.objects.filter(name=name).exists():
        raise NameTaken(f"there is a dataset called {name!r}: choose another name")
    lines: list[str] = []
    entries: list[DatasetEntry] = []
    left_out: list[dict[str, object]] = []
    steps = 0
    for session, way in routed(filters):
        reason = way.reason
        if way.pool == pool:
            try:
                trajectory = reviews.trajectory_of(session)
            except reviews.NoTrajectory as error:
                reason = str(error)
            else:
                (line,) = dump_lines([trajectory])
                digest = hashlib.sha256(line.encode()).hexdigest()
                entries.append(
                    DatasetEntry(session=session, line=len(lines), trajectory_sha256=digest)
                )
                lines.append(line)
                steps += len(trajectory.steps)
                continue
        elif way.pool is not None:
            reason = f"V(s) = {way.value}, it goes to the {way.pool.upper()} pool: {reason}"
        left_out.append({"session": session.pk, "reason": reason})
    if not lines:
        raise EmptyDataset(
            f"no session would go to the {pool.upper()} pool: "
            f"{len(left_out)} looked at; review more sessions or widen the filters"
        )
    body = "".join(lines).encode()
    sha256 = hashlib.sha256(body).hexdigest()
    uri = open_store(settings.STORAGE_URL).put_object(f"datasets/{sha256}.jsonl", body)
    dataset = Dataset(
        name=name, pool=pool, filters=filters.to_json(), sha256=sha256, uri=uri,
        trajectories=len(lines), steps=steps, left_out=left_out, created_by=by,
    )  # fmt: skip
    try:
        with transaction.atomic():
            dataset.save()
            for entry in entries:
                entry.dataset = dataset
            DatasetEntry.objects.bulk_create(entries, batch_size=1000)
    except IntegrityError as error:
        if "name" not in str(error):
            raise
        raise NameTaken(f"there is a dataset called {name!r}: choose another name") from error
    return dataset


def trajectories(dataset: Dataset) -> Iterator[Trajectory]:
    """Yield what was frozen, in order; raises Damaged where the file is not what was hashed."""
    body = open_store(settings.STORAGE_URL).get_object(key_of(dataset))
    found = hashlib.sha256(body).hexdigest()
    if found != dataset.sha256:
        raise Damaged(f"{dataset.uri} has sha256 {found[:12]}, frozen was {dataset.sha256[:12]}")
    # Not splitlines(): a JSON string may hold the separators of Unicode as they are.
    yield from load_lines(body.decode().split("\n"), name=dataset.name)


def key_of(dataset: Dataset) -> str:
    """Return the key of the dataset's file in the store."""
    return f"datasets/{dataset.sha256}.jsonl"
