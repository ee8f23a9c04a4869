"""Verbs of Run: launch, cancel, resume. What happens in between is `training.supervise`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from training import jobs
from training.errors import BadConfig, NameTaken, WrongState
from training.models import Checkpoint, Dataset, Run
from training.presets import read_config

TRAINERS = "training.trainers"  # one module per kind


def launch(
    *,
    kind: str,
    dataset: Dataset,
    base: Checkpoint,
    config: Mapping[str, object],
    by: User | None,
    name: str = "",
) -> Run:
    """Queue a run; raises BadConfig naming each field that is wrong, and NameTaken.

    Without a name the run is called after its kind, its dataset and a number.
    """
    if kind not in Run.Kind.values:
        raise BadConfig({"kind": f"{kind!r} is not one of {', '.join(Run.Kind.values)}"})
    if kind not in kinds():
        raise BadConfig({"kind": f"there is no trainer for {kind} here"})
    if dataset.pool != kind:
        raise BadConfig(
            {"dataset": f"{dataset.name} is of the {dataset.pool.upper()} pool, not for {kind}"}
        )
    values = read_config(kind, config)
    name = name or free_name(kind, dataset)
    try:
        with transaction.atomic():
            run = Run.objects.create(
                name=name, kind=kind, dataset=dataset, base=base, config=values, created_by=by
            )
    except IntegrityError as error:
        raise NameTaken(f"there is a run called {name!r}: choose another name") from error
    _soon(run)
    return run


def kinds() -> list[str]:
    """Return the kinds of run for which there is a trainer."""
    return [kind for kind in Run.Kind.values if find_spec(f"{TRAINERS}.{kind}")]


def free_name(kind: str, dataset: Dataset) -> str:
    """Return a name that no run has: kind, dataset and the next number."""
    stem = slugify(f"{kind}-{dataset.name}")[:40]
    taken = set(Run.objects.filter(name__startswith=stem).values_list("name", flat=True))
    return next(name for n in range(1, len(taken) + 2) if (name := f"{stem}-{n}") not in taken)


def cancel(run: Run) -> Run:
    """Stop a run after a checkpoint of where it is; raises WrongState where it has ended.

    One that waits in the queue is cancelled at once; the rest is its supervisor's work.
    """
    now = timezone.now()
    mine = Run.objects.filter(pk=run.pk)
    state = Run.State
    if not (
        mine.filter(state=state.QUEUED).update(state=state.CANCELLED, finished_at=now)
        or mine.filter(state=state.RUNNING).update(state=state.CANCELLING)
    ):
        run.refresh_from_db()
        if run.ended:
            raise WrongState(f"{run.name} has {run.state} already")
    run.refresh_from_db()
    return run


def resume(run: Run) -> Run:
    """Queue a cancelled or failed run again; it goes on from its last checkpoint.

    Raises WrongState for a run that has not ended or has nothing left to do.
    """
    again = {"state": Run.State.QUEUED, "error": "", "attempts": 0, "finished_at": None}
    ended = (Run.State.CANCELLED, Run.State.FAILED)
    if not Run.objects.filter(pk=run.pk, state__in=ended).update(heartbeat_at=None, **again):
        run.refresh_from_db()
        raise WrongState(f"{run.name} is {run.state}: only a cancelled or failed run is resumed")
    run.refresh_from_db()
    _soon(run)
    return run


def launch_values(run: Run) -> dict[str, Any]:
    """Return what a clone of `run` would be launched with, for the launch form."""
    return {"kind": run.kind, "dataset": run.dataset_id, "base": run.base_id, **run.config}


def _soon(run: Run) -> None:
    """Queue the supervising after the commit; a broker that is away costs time, beat finds the row."""
    transaction.on_commit(
        lambda: jobs.supervise_run.apply_async((run.pk,), retry=False), robust=True
    )
