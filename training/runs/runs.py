"""Verbs of Run: launch, cancel, resume. What happens in between is `training.runs.supervise`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from agent.models import Deployment
from training import jobs, streaming
from training.errors import BadConfig, NameTaken, WrongState
from training.models import Checkpoint, Dataset, MergeSource, MixedDataset, Rollout, Run
from training.presets import read_config
from training.runs import inputs
from training.runs.inputs import Inputs

TRAINERS = "training.trainers"  # one module per kind


def launch(
    *,
    kind: str,
    config: Mapping[str, object],
    by: User | None,
    name: str = "",
    base: Checkpoint | None = None,
    dataset: Dataset | None = None,
    mixed: Sequence[tuple[Dataset, float]] = (),
    rollout: Rollout | None = None,
    critic: Checkpoint | None = None,
    deployment: Deployment | None = None,
    sources: Sequence[tuple[Checkpoint, float | None]] = (),
    tasks: Sequence[tuple[str, str]] = (),
) -> Run:
    """Queue a run; raises BadConfig naming each field that is wrong, and NameTaken.

    Sources without any weight are merged in equal parts. Without a name the run is called after its
    kind, what it learns from, and a number. An RL run gets its rollout here.
    """
    if kind not in Run.Kind.values:
        raise BadConfig({"kind": f"{kind!r} is not one of {', '.join(Run.Kind.values)}"})
    if kind not in kinds():
        raise BadConfig({"kind": f"there is no trainer for {kind} here"})
    given = Inputs(base, dataset, mixed, rollout, critic, deployment, _shares(sources), tasks)
    values = _checked(kind, config, given)
    if kind == Run.Kind.MERGE and base is None:
        base = inputs.common_root([checkpoint for checkpoint, _ in given.sources])
    if kind == Run.Kind.PPO and values["advantage"] != "gae":
        critic = None  # nothing would ask it
    name = name or free_name(kind, _subject(given))
    try:
        with transaction.atomic():
            run = Run.objects.create(
                name=name, kind=kind, dataset=dataset, base=base, rollout=rollout, critic=critic,
                deployment=deployment, config=values, created_by=by,
            )  # fmt: skip
            MixedDataset.objects.bulk_create(
                MixedDataset(run=run, dataset=one, weight=weight) for one, weight in mixed
            )
            MergeSource.objects.bulk_create(
                MergeSource(run=run, checkpoint=one, weight=weight) for one, weight in given.sources
            )
            if kind == Run.Kind.PPO:
                streaming.begin(run, tasks=tasks)
    except IntegrityError as error:
        if "name" not in str(error):
            raise
        raise NameTaken(f"there is a run called {name!r}: choose another name") from error
    _soon(run)
    return run


def kinds() -> list[str]:
    """Return the kinds of run for which there is a trainer."""
    return [kind for kind in Run.Kind.values if find_spec(f"{TRAINERS}.{kind}")]


def free_name(kind: str, subject: str) -> str:
    """Return a name that no run has: kind, what it is about, and the next number."""
    stem = slugify(f"{kind}-{subject}")[:40].rstrip("-")
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
    rollout = run.rollout if run.kind == Run.Kind.PPO else None
    played = rollout.episodes.order_by().values_list("family", "task").distinct() if rollout else ()
    return {
        "kind": run.kind,
        "base": run.base_id,
        "dataset": run.dataset_id,
        "rollout": None if rollout else run.rollout_id,
        "critic": run.critic_id,
        # A policy server of its own is not for another run.
        "deployment": None if _own(run.deployment) else run.deployment_id,
        "mixed": {one.dataset_id: one.weight for one in run.mixed.all()},
        "sources": {one.checkpoint_id: one.weight for one in run.sources.all()},
        "tasks": "\n".join(sorted(f"{family}/{task}" for family, task in played)),
        **run.config,
    }


def _own(deployment: Deployment | None) -> bool:
    """Whether a deployment was made for one run, by `training.streaming.begin`."""
    return deployment is not None and deployment.name.startswith("rl-")


def _checked(kind: str, config: Mapping[str, object], given: Inputs) -> dict[str, Any]:
    """Return the whole configuration; raises BadConfig with all that is wrong, inputs included."""
    errors: dict[str, str] = {}
    values: dict[str, Any] = dict(config)
    try:
        values = dict(read_config(kind, config))
    except BadConfig as error:
        errors = error.errors
        values = {"min_explained_variance": 0.0} | values
        if "min_explained_variance" in errors:
            values["min_explained_variance"] = 0.0
    errors = inputs.wrong(kind, given, values) | errors
    if errors:
        raise BadConfig(errors)
    return values


def _shares(
    sources: Sequence[tuple[Checkpoint, float | None]],
) -> list[tuple[Checkpoint, float]]:
    """Return the sources with their weights; raises BadConfig where only some have one."""
    given = [(checkpoint, weight) for checkpoint, weight in sources if weight is not None]
    if sources and not given:
        parts = inputs.equal_parts(len(sources))
        return [(checkpoint, part) for (checkpoint, _), part in zip(sources, parts, strict=True)]
    if len(given) < len(sources):
        raise BadConfig({"sources": "give every checkpoint a weight, or none for equal parts"})
    return given


def _subject(given: Inputs) -> str:
    """Return what a run is about, for its name."""
    if given.dataset:
        return given.dataset.name
    if given.sources:
        return "-".join(checkpoint.version for checkpoint, _ in given.sources)
    return given.base.version if given.base else ""


def _soon(run: Run) -> None:
    """Queue the supervising after the commit; a broker that is away costs time, beat finds the row."""
    transaction.on_commit(
        lambda: jobs.supervise_run.apply_async((run.pk,), retry=False), robust=True
    )
