"""Verbs of Episode: claim, beat, finish, fail, give back, reap; and the stream of what is finished.

`claim` is the fence. It rises with every worker that takes an episode; whoever holds an older one
can't finish, fail or give back anything, so an episode counts once however often it is played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from training.models import Episode, Rollout
from training.rollouts import rollouts
from training.rollouts.admission import admitted

SILENT = timedelta(seconds=30)
"""A worker that has not beaten for so long is taken for dead."""

_FINISHING = 0x7A4E
"""Advisory lock of whoever gives out the next place in the stream."""

MAX_DETAIL = 2000
State = Episode.State


@dataclass(frozen=True, slots=True)
class Result:
    """What an episode gave; `trajectory` is the sha256 of its line in the blob store."""

    outcome: str
    reward: float | None
    trajectory: str
    score: float | None = None
    verdict: Mapping[str, Any] = field(default_factory=dict)
    versions: Sequence[str] = ()
    steps: int = 0
    seconds: float = 0.0
    policy_seconds: float = 0.0
    waited_seconds: float = 0.0


def claim(*, worker: str, n: int) -> list[Episode]:
    """Take at most `n` episodes for `worker`, the oldest first, as many as each rollout admits.

    Each comes with its rollout and deployment. Any number of workers may claim at once.
    """
    taken: list[Episode] = []
    live = Rollout.objects.filter(state__in=(Rollout.State.QUEUED, Rollout.State.RUNNING))
    for pk in list(live.order_by("pk").values_list("pk", flat=True)):
        if len(taken) >= n:
            break
        taken += _claim_of(pk, worker, n - len(taken))
    return taken


@transaction.atomic
def _claim_of(rollout_id: int, worker: str, n: int) -> list[Episode]:
    # The lock makes the counting exact; who finds it taken looks at the next rollout.
    rollout = (
        Rollout.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("deployment")
        .filter(pk=rollout_id, state__in=(Rollout.State.QUEUED, Rollout.State.RUNNING))
        .first()
    )
    if rollout is None:
        return []
    n = min(n, room(rollout))
    waiting = rollout.episodes.select_for_update(skip_locked=True).filter(state=State.WAITING)
    rows = list(waiting.order_by("pk")[:n])
    if not rows:
        return []
    now = timezone.now()
    for row in rows:
        row.rollout = rollout
        row.state, row.worker, row.claim = State.RUNNING, worker, row.claim + 1
        row.heartbeat_at, row.admitted, row.steps = now, rollout.version, 0
    Episode.objects.filter(pk__in=[row.pk for row in rows]).update(
        state=State.RUNNING, worker=worker, claim=F("claim") + 1, heartbeat_at=now, steps=0,
        admitted=rollout.version, started_at=Coalesce(F("started_at"), Now()),
    )  # fmt: skip
    if rollout.state == Rollout.State.QUEUED:
        rollout.state = Rollout.State.RUNNING
        rollout.started_at = rollout.started_at or now
        rollout.save(update_fields=["state", "started_at"])
    return rows


def room(rollout: Rollout) -> int:
    """Return how many more episodes of `rollout` may be begun now."""
    config = rollouts.config_of(rollout)
    return admitted(
        running=rollout.episodes.filter(state=State.RUNNING).count(),
        concurrency=config.concurrency,
        accepted=rollout.episodes.filter(state=State.DONE).count() if config.staleness >= 0 else 0,
        version=rollout.version,
        batch=config.batch,
        staleness=config.staleness,
    )


def beat(*, worker: str, steps: Mapping[int, int]) -> dict[int, int]:
    """Keep the worker's episodes and note how far they are; returns {episode: claim} of its own.

    What is missing there was taken away: cancelled, or given to somebody else.
    """
    mine = Episode.objects.filter(worker=worker, state=State.RUNNING)
    mine.update(heartbeat_at=Now())
    held = {pk: (claim, done) for pk, claim, done in mine.values_list("pk", "claim", "steps")}
    moved = [
        Episode(pk=pk, steps=steps[pk])
        for pk, (_, done) in held.items()
        if steps.get(pk, done) != done
    ]
    Episode.objects.bulk_update(moved, ["steps"])
    return {pk: claim for pk, (claim, _) in held.items()}


def finish(episode_id: int, claim: int, result: Result) -> Episode | None:
    """Count an episode as played; None where `claim` is not the newest or it has ended already.

    Its `sequence` comes after that of every episode that anybody can see finished: numbers are given
    out under a lock that is held until the commit, so a reader with a cursor misses none.
    """
    with transaction.atomic():
        row = _held(episode_id, claim)
        if row is None:
            return None
        row.state, row.finished_at = State.DONE, timezone.now()
        row.outcome, row.reward, row.score = result.outcome, result.reward, result.score
        row.verdict, row.versions = _kept(dict(result.verdict)), _kept(list(result.versions))
        row.trajectory, row.steps = result.trajectory, result.steps
        row.seconds, row.policy_seconds = result.seconds, result.policy_seconds
        row.waited_seconds = result.waited_seconds
        version = Rollout.objects.values_list("version", flat=True).get(pk=row.rollout_id)
        row.staleness = max(version - row.admitted, 0)
        row.sequence = _next_place()
        row.save()
    rollouts.settle(row.rollout_id)
    return row


def fail_environment(episode_id: int, claim: int, *, cause: str, detail: str) -> Episode | None:
    """Note that the environment broke: again with the same seed, or BROKEN after the last attempt.

    No reward follows from it. None where `claim` is not the newest.
    """
    with transaction.atomic():
        row = _held(episode_id, claim)
        if row is None:
            return None
        _failed(row, cause, detail)
        row.save()
    rollouts.settle(row.rollout_id)
    return row


def give_back(episode_id: int, claim: int) -> bool:
    """Let somebody else begin the episode again; costs no attempt. False for an old `claim`."""
    given = Episode.objects.filter(pk=episode_id, claim=claim, state=State.RUNNING).update(
        state=State.WAITING, worker="", heartbeat_at=None, steps=0
    )
    return bool(given)


def reap(*, silent: timedelta = SILENT, limit: int = 1000) -> int:
    """Take back what dead workers hold, with the cause "worker lost"; returns how many episodes.

    It costs an attempt: an episode that kills its worker must not do so for ever.
    """
    with transaction.atomic():
        lost = list(
            Episode.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("rollout")
            .filter(Q(heartbeat_at__lt=timezone.now() - silent) | Q(heartbeat_at=None))
            .filter(state=State.RUNNING)
            .order_by("pk")[:limit]
        )
        for row in lost:
            _failed(row, "worker lost", f"{row.worker} was not heard of for {silent.seconds} s")
            row.save()
    for pk in {row.rollout_id for row in lost}:
        rollouts.settle(pk)
    return len(lost)


def finished(*, after: int = 0, limit: int = 100, rollout: Rollout | None = None) -> list[Episode]:
    """Return finished episodes whose `sequence` is above `after`, in that order, at most `limit`.

    The stream for trainers: remember the last one's sequence, and none is missed or seen twice.
    """
    rows = Episode.objects.filter(state=State.DONE, sequence__gt=after)
    if rollout is not None:
        rows = rows.filter(rollout=rollout)
    return list(rows.order_by("sequence")[:limit])


def _held(episode_id: int, claim: int) -> Episode | None:
    return (
        Episode.objects.select_for_update(of=("self",))
        .select_related("rollout")
        .filter(pk=episode_id, claim=claim, state=State.RUNNING)
        .first()
    )


def _failed(row: Episode, cause: str, detail: str) -> None:
    row.attempts += 1
    row.failures = [
        *row.failures,
        {
            "attempt": row.attempts, "cause": cause, "detail": _kept(detail[:MAX_DETAIL]),
            "at": timezone.now().isoformat(timespec="seconds"), "worker": row.worker,
        },
    ]  # fmt: skip
    row.worker, row.heartbeat_at = "", None
    if row.attempts >= rollouts.config_of(row.rollout).attempts:
        row.state, row.finished_at = State.BROKEN, timezone.now()
    else:
        row.state = State.WAITING


def _kept(value: Any) -> Any:
    """Return a JSON value as PostgreSQL takes it: no NUL, no half of a pair, whoever wrote it."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        case Mapping():
            return {_kept(key): _kept(one) for key, one in value.items()}
        case list() | tuple():
            return [_kept(one) for one in value]
    return value


def _next_place() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_FINISHING])
        cursor.execute("SELECT nextval('training_episode_finished')")
        return int(cursor.fetchone()[0])
