"""Deleting a contributor's data, and saying what has learnt from it.

Rows go in one transaction: sessions with all that hangs on them; datasets that hold them are marked
and so is every checkpoint that was made of those, directly or by way of parents, critics, merges and
episodes that one of them played.
Files go after it. What is to go is written down in the store first (`erasures/NAME.json`), so that
erasing again finishes what a killed process left.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from agent.models import Deployment
from annotation.data import erasure as annotated
from annotation.data.erasure import Person
from annotation.models import Session
from annotation.recordings import rights
from blobs import BlobStore, MissingBlob, blob_key, open_store
from training.data.datasets import sweep
from training.errors import Refused, WrongState
from training.lineage import Key, links
from training.lineage.graph import downstream
from training.models import Checkpoint, Dataset, DatasetEntry, Episode, Rollout, Run
from training.runs import runs, workdir

log = logging.getLogger(__name__)
WITHDRAWN = "recording-of-session-"  # instead of a person's name
SHOWN = re.compile(rb'"screenshot":\s*"([0-9a-f]{64})"')


class NothingFound(Refused):
    """There is nothing of that person here, and no erasure of it to finish."""


class Meanwhile(Refused):
    """Somebody froze a dataset with it at the same moment; erase again."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What there is of a person, and what has learnt from it; `counts` are rows by their name."""

    person: Person
    counts: dict[str, int] = field(default_factory=dict)
    live: tuple[int, ...] = ()  # sessions that are still going on
    datasets: tuple[Dataset, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    deployments: tuple[Deployment, ...] = ()  # that serve one of the checkpoints now
    runs: tuple[Run, ...] = ()  # that train on one of the datasets now, or are about to
    unfinished: bool = False  # files of an erasure that was interrupted are still there

    @property
    def empty(self) -> bool:
        return not (self.counts.get("sessions") or self.counts.get("recordings") or self.unfinished)


def trace(who: str | User) -> Trace:
    """Return what erasing would find; changes nothing."""
    return _trace(annotated.person(who))


def erase(who: str | User, *, by: User | None) -> Trace:
    """Delete a person's data for good, or finish doing so; returns what was found.

    Runs that learn from it are cancelled. Raises NothingFound, StillGoingOn, Meanwhile, and BlobError
    where files could not be deleted: erasing again goes on there.
    """
    found = trace(who)
    if found.empty:
        raise NothingFound(f"there is nothing of {found.person.name} here")
    try:
        with transaction.atomic():
            found = _erase_rows(found.person)
    except (IntegrityError, ProtectedError) as error:
        raise Meanwhile("a dataset was frozen with it at this moment: erase again") from error
    _cancel(found)
    log.warning(
        "%s erased %s: %s, datasets %s, checkpoints %s", by or "a command", found.person.name,
        found.counts, [one.name for one in found.datasets], [c.version for c in found.checkpoints],
    )  # fmt: skip
    finish(found.person.name)
    sweep()
    return found


def erase_withdrawn() -> int:
    """Delete the sessions whose recordings were withdrawn, and mark what learnt; returns how many.

    What an interrupted turn left of the files is finished by the next. One that a dataset is frozen
    with at this moment waits.
    """
    count = 0
    for session in rights.withdrawn_sessions():
        whose = Person(f"{WITHDRAWN}{session.pk}", None)
        try:
            with transaction.atomic():
                Session.objects.select_for_update().get(pk=session.pk)
                found = _trace_of(whose, [session.pk])
                _mark(whose, [session.pk], found)
                rights.forget_session(session)
        except (IntegrityError, ProtectedError):
            continue
        _cancel(found)
        count += 1
    for name in unfinished():
        if name.startswith(WITHDRAWN):
            finish(name)
    sweep()
    return count


def finish(name: str) -> list[str]:
    """Delete the files that an erasure wrote down; returns the runs whose folders have to wait.

    A picture that somebody else's session or an episode shows stays. A folder of a run that has not
    ended, or that lies on another machine, waits: erase again then, or there.
    """
    store = open_store(settings.STORAGE_URL)
    book = _book(store, name)
    kept = Dataset.objects.filter(sha256__in=book["datasets"], erased_at=None)
    for sha256 in set(book["datasets"]) - set(kept.values_list("sha256", flat=True)):
        store.delete(f"datasets/{sha256}.jsonl")
    pictures = set(book["pictures"])
    pictures -= annotated.still_shown(pictures)
    for sha256 in sorted(pictures - _in_episodes(store, pictures)):
        store.delete(blob_key(sha256))
    waiting = [run.name for run in Run.objects.filter(name__in=book["runs"]) if not _cleared(run)]
    if waiting:
        _write(store, name, {"datasets": [], "pictures": [], "runs": waiting})
    else:
        store.delete(_key(name))
    return waiting


def unfinished() -> list[str]:
    """Return the names under which files are still to be deleted."""
    keys = open_store(settings.STORAGE_URL).list_keys("erasures/")
    return [key.removeprefix("erasures/").removesuffix(".json") for key in keys]


def _cancel(found: Trace) -> None:
    for run in found.runs:
        with contextlib.suppress(WrongState):  # it has ended in the meantime
            runs.cancel(run)


def _trace(whose: Person) -> Trace:
    return _trace_of(whose, list(annotated.sessions_of(whose).values_list("pk", flat=True)))


def _trace_of(whose: Person, sessions: list[int]) -> Trace:
    live = Session.objects.filter(pk__in=sessions, status__in=Session.LIVE).order_by("pk")
    datasets = _datasets_with(sessions)
    checkpoints = _made_of(datasets)
    return Trace(
        person=whose,
        counts=annotated.counts(whose, sessions),
        live=tuple(live.values_list("pk", flat=True)),
        datasets=tuple(datasets),
        checkpoints=tuple(checkpoints),
        deployments=tuple(_serving(checkpoints)),
        runs=tuple(_learning(datasets)),
        unfinished=whose.name in unfinished(),
    )


def _erase_rows(whose: Person) -> Trace:
    """Mark and delete; what was found is looked up again under the locks."""
    rows = annotated.sessions_of(whose).select_for_update(of=("self",))
    sessions = [row.pk for row in rows]
    found = _trace_of(whose, sessions)
    _mark(whose, sessions, found)
    annotated.delete(whose, sessions)
    return found


def _mark(whose: Person, sessions: list[int], found: Trace) -> None:
    """Write down what is to go, and mark what learnt from it."""
    now = timezone.now()
    pictures = annotated.pictures_of(whose, sessions)
    datasets = [one.pk for one in found.datasets]
    learnt = Run.objects.filter(dataset__in=datasets) | Run.objects.filter(
        mixed__dataset__in=datasets
    )
    store = open_store(settings.STORAGE_URL)
    book = _book(store, whose.name)
    _write(store, whose.name, {
        "datasets": sorted({*book["datasets"], *(one.sha256 for one in found.datasets)}),
        "pictures": sorted({*book["pictures"], *pictures}),
        "runs": sorted({*book["runs"], *learnt.values_list("name", flat=True)}),
    })  # fmt: skip
    DatasetEntry.objects.filter(session__in=sessions).update(session=None)
    Dataset.objects.filter(pk__in=datasets, erased_at=None).update(erased_at=now)
    marked = [one.pk for one in found.checkpoints]
    Checkpoint.objects.filter(pk__in=marked, erased_at=None).update(erased_at=now)
    _forget_left_out(set(sessions))


def _datasets_with(sessions: list[int]) -> list[Dataset]:
    held = DatasetEntry.objects.filter(session__in=sessions).values("dataset")
    return list(Dataset.objects.filter(pk__in=held).order_by("pk"))


def _made_of(datasets: list[Dataset]) -> list[Checkpoint]:
    if not datasets:
        return []
    edges, start = links.load(), [Key("dataset", one.pk) for one in datasets]
    made: set[int] = set()
    while start:
        found = {key.pk for key in downstream(edges, start) if key.kind == "checkpoint"} - made
        made |= found
        start = links.played_by(found)  # who learns from what they played learns from them
    return list(Checkpoint.objects.filter(pk__in=made).order_by("pk"))


def _serving(checkpoints: list[Checkpoint]) -> list[Deployment]:
    versions = [one.version for one in checkpoints]
    return list(Deployment.objects.filter(version__in=versions).order_by("name"))


def _learning(datasets: list[Dataset]) -> list[Run]:
    waiting = Run.objects.filter(state__in=(Run.State.QUEUED, Run.State.RUNNING))
    learns = waiting.filter(dataset__in=datasets) | waiting.filter(mixed__dataset__in=datasets)
    return list(learns.distinct().order_by("pk"))


def _forget_left_out(sessions: set[int]) -> None:
    """Take the sessions' numbers out of what datasets left out; the reasons stay, to be counted."""
    for dataset in Dataset.objects.only("left_out").iterator():
        if any(one.get("session") in sessions for one in dataset.left_out):
            dataset.left_out = [
                {"reason": one["reason"]} if one.get("session") in sessions else one
                for one in dataset.left_out
            ]
            dataset.save(update_fields=["left_out"])


def _in_episodes(store: BlobStore, pictures: set[str]) -> set[str]:
    """Return those of the pictures that an episode shows: the same page may have been played."""
    found: set[str] = set()
    for sha256 in _records() if pictures else ():
        with contextlib.suppress(MissingBlob):
            found.update(m.decode() for m in SHOWN.findall(store.get(sha256)))
    return found & pictures


def _records() -> Iterator[str]:
    blind = Rollout.objects.filter(config__picture=False).values("pk")
    rows = Episode.objects.exclude(trajectory="").exclude(rollout__in=blind)
    yield from rows.order_by().values_list("trajectory", flat=True).distinct().iterator()


def _cleared(run: Run) -> bool:
    """Delete the rows and pictures in a run's folder; False where that has to wait."""
    if not run.ended or run.host not in ("", socket.gethostname()):
        return False
    directory = workdir.directory_of(run)
    (directory / "data.jsonl").unlink(missing_ok=True)
    shutil.rmtree(directory / "blobs", ignore_errors=True)
    return True


def _key(name: str) -> str:
    return f"erasures/{name}.json"


def _book(store: BlobStore, name: str) -> dict[str, list[str]]:
    """Return what is written down; nothing where nothing is."""
    try:
        return dict(json.loads(store.get_object(_key(name))))
    except MissingBlob:
        return {"datasets": [], "pictures": [], "runs": []}


def _write(store: BlobStore, name: str, book: dict[str, Any]) -> None:
    store.put_object(_key(name), json.dumps(book).encode())
