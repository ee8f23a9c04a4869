"""Verbs of Rollout: create, pause, resume, drain, cancel, advance, settle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agent.models import Deployment
from sandbox import families
from training.errors import BadConfig, NameTaken, WrongState
from training.models import Episode, Rollout
from training.rollouts.config import RolloutConfig, read_config

MAX_EPISODES = 1_000_000
State = Rollout.State


def create(
    *,
    name: str,
    deployment: Deployment,
    tasks: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    repeats: int = 1,
    config: Mapping[str, object] | None = None,
    by: User | None = None,
    purpose: str = Rollout.Purpose.COLLECT,
) -> Rollout:
    """Queue one episode per (family, task), seed and repeat; workers find them by their rows.

    Raises BadConfig naming each field that is wrong, and NameTaken.
    """
    errors = _wrong(tasks, seeds, repeats)
    if errors:
        read_config(config or {})  # says what is wrong there first
        raise BadConfig(errors)
    # Seed by seed, so that what is finished first is a sample of all tasks.
    wanted = [
        (family, task, seed, repeat)
        for repeat in range(repeats)
        for seed in dict.fromkeys(seeds)
        for family, task in dict.fromkeys(tasks)
    ]
    return create_list(
        name=name, deployment=deployment, wanted=wanted, config=config, by=by, purpose=purpose
    )


def create_list(
    *,
    name: str,
    deployment: Deployment,
    wanted: Sequence[tuple[str, str, int, int]],
    config: Mapping[str, object] | None = None,
    by: User | None = None,
    purpose: str = Rollout.Purpose.COLLECT,
) -> Rollout:
    """Queue the episodes `wanted`, (family, task, seed, repeat) each, begun in this order.

    Raises BadConfig naming each field that is wrong, and NameTaken.
    """
    values = read_config(config or {})
    errors = {}
    if deployment.reads == Deployment.Reads.ELEMENTS and not values.elements:
        errors["elements"] = f"{deployment.name} reads elements"
    if deployment.reads == Deployment.Reads.SCREENSHOT and not values.picture:
        errors["picture"] = f"{deployment.name} reads pictures"
    if errors:
        raise BadConfig(errors)
    try:
        with transaction.atomic():
            rollout = Rollout.objects.create(
                name=name, purpose=purpose, deployment=deployment, config=values.as_dict(),
                total=len(wanted), created_by=by,
            )  # fmt: skip
            _queue(rollout, wanted)
    except IntegrityError as error:
        raise NameTaken(f"there is a rollout called {name!r}: choose another name") from error
    return rollout


def config_of(rollout: Rollout) -> RolloutConfig:
    return read_config(rollout.config)


def pause(rollout: Rollout, *, reason: str = "") -> Rollout:
    """Ask nothing more of the policy; episodes wait where they are. Raises WrongState."""
    return _move(rollout, (State.QUEUED, State.RUNNING), State.PAUSED, error=reason)


def still_paused(rollout: Rollout, *, reason: str) -> None:
    """Say why a rollout that is paused for a reason still is; does nothing to any other."""
    paused = Rollout.objects.filter(pk=rollout.pk, state=State.PAUSED)
    paused.exclude(error__in=("", reason)).update(error=reason)


def resume(rollout: Rollout) -> Rollout:
    """Go on, from a pause or while draining; raises WrongState."""
    return _move(rollout, (State.PAUSED, State.DRAINING), State.RUNNING, error="")


def drain(rollout: Rollout) -> Rollout:
    """Begin no episode any more; the rollout is done when the running ones are. Raises WrongState."""
    moved = _move(rollout, (State.QUEUED, State.RUNNING, State.PAUSED), State.DRAINING, error="")
    settle(moved.pk)
    moved.refresh_from_db()
    return moved


def cancel(rollout: Rollout) -> Rollout:
    """End it now: what is not finished never will be; raises WrongState where it has ended."""
    return _stop(rollout, State.CANCELLED, "")


def fail(rollout: Rollout, *, error: str) -> Rollout:
    """End it because nothing of it can go on; raises WrongState where it has ended."""
    return _stop(rollout, State.FAILED, error)


def block(rollout: Rollout, *, reason: str, for_good: bool = False) -> None:
    """Pause (or fail) a rollout that can't go on for now; does nothing where somebody was faster."""
    try:
        if for_good:
            fail(rollout, error=reason)
        else:
            pause(rollout, reason=reason)
    except WrongState:
        pass


def advance(rollout: Rollout, *, to: int | None = None) -> int:
    """Note that the trainer has made one more update, or `to` updates in all; returns how many.

    With a staleness bound this lets the next batch of episodes begin. What was noted before is
    never taken back. Raises WrongState.
    """
    with transaction.atomic():
        row = _locked(rollout)
        if row.state not in Rollout.LIVE:
            raise WrongState(f"{row.name} is {row.state}: nothing is begun for an update any more")
        row.version = row.version + 1 if to is None else max(row.version, to)
        row.save(update_fields=["version"])
    return row.version


def replace_broken(
    rollout: Rollout,
    more: Callable[[int, int], Iterable[tuple[str, str, int, int]]],
    *,
    wanted: int,
) -> int:
    """Queue as many episodes as have broken, so that `wanted` can finish; returns how many.

    `more(after, count)` names them: the next `count` after the `after` that there are. A rollout
    that was done because of them goes on.
    """
    with transaction.atomic():
        row = _locked(rollout)
        if row.state not in (State.QUEUED, State.RUNNING, State.PAUSED, State.DONE):
            return 0
        broken = row.episodes.filter(state=Episode.State.BROKEN).count()
        missing = wanted - (row.total - broken)
        if missing <= 0:
            return 0
        _queue(row, more(row.total, missing))
        row.total += missing
        if row.state == State.DONE:
            row.state, row.finished_at = State.RUNNING, None
        row.save(update_fields=["total", "state", "finished_at"])
    return missing


def settle(rollout_id: int) -> bool:
    """Call a rollout done when nothing of it is left to play; returns whether it is now."""
    with transaction.atomic():
        row = Rollout.objects.select_for_update().filter(pk=rollout_id).first()
        if row is None or row.state not in Rollout.LIVE:
            return False
        open_ = _open(row)
        if row.state == State.DRAINING and not open_.filter(state=Episode.State.RUNNING).exists():
            open_.update(state=Episode.State.CANCELLED, finished_at=timezone.now())
        elif open_.exists():
            return False
        row.state, row.finished_at = State.DONE, timezone.now()
        row.save(update_fields=["state", "finished_at"])
    return True


def settle_all() -> int:
    """Settle every rollout whose last worker died before it could; returns how many ended."""
    live = Rollout.objects.filter(state__in=Rollout.LIVE).values_list("pk", flat=True)
    return sum(settle(pk) for pk in list(live))


def _wrong(tasks: Sequence[tuple[str, str]], seeds: Sequence[int], repeats: int) -> dict[str, str]:
    errors = {}
    if not tasks:
        errors["tasks"] = "name at least one task"
    if not seeds:
        errors["seeds"] = "give at least one seed"
    elif not all(0 <= seed < 2**63 for seed in seeds):
        errors["seeds"] = "a seed is a whole number from 0 to 2**63 - 1"
    if not 1 <= repeats <= 1000:
        errors["repeats"] = f"{repeats} is not between 1 and 1000"
    elif len(tasks) * len(seeds) * repeats > MAX_EPISODES:
        errors["tasks"] = f"more than {MAX_EPISODES} episodes: make several rollouts"
    if unknown := unknown_task(tasks):
        errors["tasks"] = unknown
    return errors


def unknown_task(tasks: Iterable[tuple[str, str]]) -> str:
    """Return what is wrong with the first of `tasks` that there is not, "" where all are known."""
    for family, task in tasks:
        try:
            families.find(families.load(family), task)
        except families.UnknownTask as error:
            return str(error)
    return ""


def _queue(rollout: Rollout, wanted: Iterable[tuple[str, str, int, int]]) -> None:
    Episode.objects.bulk_create(
        (
            Episode(rollout=rollout, family=family, task=task, seed=seed, repeat=repeat)
            for family, task, seed, repeat in wanted
        ),
        batch_size=1000,
    )


def _move(rollout: Rollout, of: Sequence[str], to: str, *, error: str) -> Rollout:
    with transaction.atomic():
        row = _locked(rollout)
        if row.state not in of:
            raise WrongState(f"{row.name} is {row.state}: it can't become {to}")
        row.state, row.error = to, error
        row.save(update_fields=["state", "error"])
    return row


def _stop(rollout: Rollout, state: str, error: str) -> Rollout:
    with transaction.atomic():
        row = _locked(rollout)
        if row.state not in Rollout.LIVE:
            raise WrongState(f"{row.name} is {row.state} already")
        row.state, row.error, row.finished_at = state, error, timezone.now()
        row.save(update_fields=["state", "error", "finished_at"])
        _open(row).update(state=Episode.State.CANCELLED, finished_at=row.finished_at)
    return row


def _locked(rollout: Rollout) -> Rollout:
    return Rollout.objects.select_for_update().get(pk=rollout.pk)


def _open(rollout: Rollout) -> QuerySet[Episode, Any]:
    waiting = (Episode.State.WAITING, Episode.State.RUNNING)
    return rollout.episodes.filter(state__in=waiting)
