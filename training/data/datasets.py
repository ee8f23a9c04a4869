"""Verbs of Dataset: freezing sessions and episodes into one hashed file, and reading it back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction

from annotation.data import reviews
from annotation.models import Session
from annotation.recordings import thoughts
from blobs import BlobStore, Damaged, MissingBlob, open_store
from training.data import general
from training.data.selection import Filters, check, routed
from training.errors import EmptyDataset, Erased, NameTaken, WrongState
from training.models import Dataset, DatasetEntry, Episode
from training.rewards.judging import Judge
from training.rollouts import record
from trajectory import FormatError, Trajectory, dump_lines, load_lines

# "frze": the advisory lock that whoever freezes shares, and that `sweep` wants alone.
_FREEZING = 0x66727A65


class NothingKept(Exception):
    """A session or an episode has no trajectory to learn from; the message says why."""


def freeze(*, name: str, pool: str, filters: Filters, by: User | None) -> Dataset:
    """Freeze every session and episode that V(s) sends to `pool` into a dataset.

    The file holds one trajectory per line, sessions before episodes, each in their order; the same
    content gives the same sha256. A recording in other words comes after its original, and is counted
    apart. What is left out is listed with its reason. Raises EmptyDataset
    where nothing would be in it, NameTaken, BadConfig by filter, and NoAnswer of a reward model.
    """
    _require_free(name)
    check(filters)
    store = open_store(settings.STORAGE_URL)
    judge = Judge.named(filters.judge) if filters.judge else None
    lines: list[str] = []
    entries: list[DatasetEntry] = []
    left_out: list[dict[str, object]] = []
    steps = augmented = augmented_steps = 0
    for row, way in routed(filters, judge=judge):
        kind = "session" if isinstance(row, Session) else "episode"
        reason = way.reason
        if way.pool == pool:
            try:
                trajectory = _trajectory_of(row, store)
            except NothingKept as error:
                reason = str(error)
            else:
                if filters.thoughts:
                    trajectory = thoughts.without_synthesized(trajectory)
                _add(trajectory, row, reason, lines, entries)
                steps += len(trajectory.steps)
                # Right after its original: where lines are split, it is never far from it.
                other = _reworded(row, trajectory) if filters.rewordings else None
                if other is not None:
                    why = f"{trajectory.id} in other words, by {other[0].metadata['reworded_by']}"
                    _add(other[0], row, why, lines, entries, augmented=True)
                    augmented, augmented_steps = augmented + 1, augmented_steps + other[1]
                continue
        elif way.pool is not None:
            reason = f"V(s) = {way.value}, it goes to the {way.pool.upper()} pool: {reason}"
        left_out.append({kind: row.pk, "reason": reason})
    if not lines:
        raise EmptyDataset(
            f"no session would go to the {pool.upper()} pool, and no episode: {len(left_out)} "
            "looked at; review more sessions, play more episodes or widen the filters"
        )
    counts = {
        "trajectories": len(lines) - augmented, "steps": steps, "left_out": left_out,
        "augmented": augmented, "augmented_steps": augmented_steps,
    }  # fmt: skip
    return _keep(
        name=name, pool=pool, lines=lines, entries=entries, filters=filters.to_json(), by=by,
        **counts,
    )  # fmt: skip


def refreeze(dataset: Dataset, *, by: User | None) -> Dataset:
    """Freeze a fresh dataset from the filters of another, under the next free name.

    For a dataset that somebody's data was deleted from. Raises what `freeze` raises, and WrongState
    for general data, which has no filters.
    """
    if dataset.pool == Dataset.Pool.GENERAL:
        raise WrongState(f"{dataset.name} was imported from a file: import it again")
    stem = re.sub(r"-\d+$", "", dataset.name)[:40]
    taken = set(Dataset.objects.filter(name__startswith=stem).values_list("name", flat=True))
    name = next(name for n in range(2, len(taken) + 3) if (name := f"{stem}-{n}") not in taken)
    return freeze(name=name, pool=dataset.pool, filters=Filters.from_json(dataset.filters), by=by)


def import_general(*, name: str, file: str, lines: Iterable[bytes], by: User | None) -> Dataset:
    """Freeze conversations from elsewhere (training.data.general) into a dataset of the general pool.

    `file` is what errors call it. Raises BrokenConversation, EmptyDataset and NameTaken.
    """
    _require_free(name)
    found = list(general.read(lines, file=file))
    if not found:
        raise EmptyDataset(f"{file} holds no conversation")
    return _keep(
        name=name, pool=Dataset.Pool.GENERAL, lines=[one.to_line() for one in found], entries=[],
        filters={"file": file}, by=by, trajectories=len(found),
        steps=sum(len(one.learnt) for one in found),
    )  # fmt: skip


def trajectories(dataset: Dataset) -> Iterator[Trajectory]:
    """Yield what was frozen, in order.

    Raises Erased, WrongState for general data, and Damaged where the file is not what was hashed.
    """
    if dataset.pool == Dataset.Pool.GENERAL:
        raise WrongState(f"{dataset.name} is general data: it holds conversations, no trajectories")
    # Not splitlines(): a JSON string may hold the separators of Unicode as they are.
    yield from load_lines(_body(dataset).decode().split("\n"), name=dataset.name)


def conversations(dataset: Dataset) -> Iterator[general.Conversation]:
    """Yield the conversations of general data, in order; raises as `trajectories` does."""
    if dataset.pool != Dataset.Pool.GENERAL:
        raise WrongState(f"{dataset.name} holds trajectories, it is no general data")
    yield from general.read(_body(dataset).split(b"\n"), file=dataset.name)


def key_of(dataset: Dataset) -> str:
    """Return the key of the dataset's file in the store."""
    return f"datasets/{dataset.sha256}.jsonl"


def sweep() -> int:
    """Delete files that no row knows; returns how many.

    A freeze that was killed between the two leaves one, and whose data is in it nobody could tell.
    While anything is being frozen nothing is deleted. Raises BlobError.
    """
    store = open_store(settings.STORAGE_URL)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_FREEZING])
        (alone,) = cursor.fetchone() or (False,)
        if not alone:
            return 0
        known = {key_of(dataset) for dataset in Dataset.objects.filter(erased_at=None)}
        left = [key for key in store.list_keys("datasets/") if key not in known]
        for key in left:
            store.delete(key)
    return len(left)


def _body(dataset: Dataset) -> bytes:
    if Dataset.objects.filter(pk=dataset.pk).exclude(erased_at=None).exists():
        raise Erased(
            f"data of somebody was deleted from {dataset.name}: freeze a fresh dataset from its "
            "filters and train on that"
        )
    body = open_store(settings.STORAGE_URL).get_object(key_of(dataset))
    found = hashlib.sha256(body).hexdigest()
    if found != dataset.sha256:
        raise Damaged(f"{dataset.uri} has sha256 {found[:12]}, frozen was {dataset.sha256[:12]}")
    return body


def _trajectory_of(row: Session | Episode, store: BlobStore) -> Trajectory:
    try:
        found = reviews.trajectory_of(row) if isinstance(row, Session) else record.read(row, store)
    except (reviews.NoTrajectory, MissingBlob, Damaged, FormatError) as error:
        raise NothingKept(str(error)) from error
    if found is None or not found.steps:
        raise NothingKept(f"{row._meta.verbose_name} {row.pk} has no steps")
    return found


def _reworded(row: Session | Episode, found: Trajectory) -> tuple[Trajectory, int] | None:
    recorded = isinstance(row, Session) and row.mode == Session.Mode.IN_SITU
    return thoughts.reworded(row, found) if recorded else None


def _add(
    trajectory: Trajectory,
    row: Session | Episode,
    reason: str,
    lines: list[str],
    entries: list[DatasetEntry],
    *,
    augmented: bool = False,
) -> None:
    (line,) = dump_lines([trajectory])
    kind = "session" if isinstance(row, Session) else "episode"
    entries.append(
        DatasetEntry(
            line=len(lines),
            trajectory_sha256=hashlib.sha256(line.encode()).hexdigest(),
            reason=reason[:300],
            augmented=augmented,
            **{kind: row},
        )
    )
    lines.append(line)


def _require_free(name: str) -> None:
    if Dataset.objects.filter(name=name).exists():
        raise NameTaken(f"there is a dataset called {name!r}: choose another name")


def _keep(
    *,
    name: str,
    pool: str,
    lines: Sequence[str],
    entries: Sequence[DatasetEntry],
    by: User | None,
    **values: Any,
) -> Dataset:
    body = "".join(lines).encode()
    sha256 = hashlib.sha256(body).hexdigest()
    store = open_store(settings.STORAGE_URL)
    dataset = Dataset(name=name, pool=pool, sha256=sha256, created_by=by, **values)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_FREEZING])
            dataset.uri = store.put_object(key_of(dataset), body)
            dataset.save()
            for entry in entries:
                entry.dataset = dataset
            DatasetEntry.objects.bulk_create(entries, batch_size=1000)
    except IntegrityError as error:
        _require_free(name)
        if not Dataset.objects.filter(sha256=sha256, erased_at=None).exists():
            store.delete(key_of(dataset))
        raise WrongState("a session was deleted while it was frozen: freeze again") from error
    return dataset
