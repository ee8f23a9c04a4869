"""The figures of a rollout's page, all from its rows."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, F, Q, Value
from django.db.models.functions import Floor, Least
from django.utils import timezone

from training.models import Episode, Rollout, RolloutWorker
from training.rollouts import workers

WINDOW = timedelta(minutes=10)
BINS = 5
MAX_POINTS = 240
State = Episode.State


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `share` of the longest, from 0 to 100."""

    label: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """The rewards of a family's finished episodes; `bars` from 0 to 1 in BINS equal parts."""

    family: str
    done: int
    broken: int
    mean: float | None
    full: int
    steps: float | None
    bars: list[Bar]


def of(rollout: Rollout) -> dict[str, Any]:
    """Return everything that the panel of a rollout shows."""
    counts = dict(rollout.episodes.values_list("state").annotate(Count("pk")))
    done, broken = counts.get(State.DONE, 0), counts.get(State.BROKEN, 0)
    ended = done + broken + counts.get(State.CANCELLED, 0)
    mean = rollout.episodes.filter(state=State.DONE).aggregate(mean=Avg("reward"))["mean"]
    rate = per_hour(rollout)
    left = counts.get(State.WAITING, 0) + counts.get(State.RUNNING, 0)
    return {
        "counts": {str(state): counts.get(state, 0) for state in State.values},
        "ended": ended,
        "rate": rate,
        "left_s": left / rate * 3600 if rate and rollout.state in Rollout.LIVE else None,
        "mean": mean,
        "causes": causes(rollout),
        "families": families_of(rollout),
        "staleness": bars(staleness(rollout)),
        "versions": versions(rollout),
        "workers": using(workers.alive()),
    }


def per_hour(rollout: Rollout) -> float | None:
    """Return finished episodes per hour: over the last WINDOW while it runs, over all of it after."""
    done = rollout.episodes.filter(state=State.DONE)
    if rollout.started_at is None:
        return None
    end = rollout.finished_at or timezone.now()
    begin = rollout.started_at
    if rollout.finished_at is None:
        begin = max(begin, end - WINDOW)
    hours = max((end - begin).total_seconds(), 1.0) / 3600
    return done.filter(finished_at__gte=begin, finished_at__lte=end).count() / hours


def causes(rollout: Rollout) -> list[Bar]:
    """Return how often each cause broke an attempt, the most frequent first."""
    found: Counter[str] = Counter()
    for failures in rollout.episodes.filter(attempts__gt=0).values_list("failures", flat=True):
        found.update(failure["cause"] for failure in failures)
    return bars(found.most_common())


def staleness(rollout: Rollout) -> list[tuple[str, int]]:
    rows = rollout.episodes.exclude(staleness=None).values_list("staleness")
    return [
        (str(value), count) for value, count in rows.annotate(Count("pk")).order_by("staleness")
    ]


def versions(rollout: Rollout) -> list[tuple[str, int]]:
    """Return the model versions of the newest finished episodes, with in how many each decided."""
    found: Counter[str] = Counter()
    newest = rollout.episodes.filter(state=State.DONE).order_by("-sequence")
    for names in newest.values_list("versions", flat=True)[:500]:
        found.update(names)
    return found.most_common()


def families_of(rollout: Rollout) -> list[FamilyFigures]:
    """Return the rewards by family, in the order of their names."""
    rows = rollout.episodes.values("family").annotate(
        done=Count("pk", filter=Q(state=State.DONE)),
        broken=Count("pk", filter=Q(state=State.BROKEN)),
        mean=Avg("reward"),
        full=Count("pk", filter=Q(reward__gte=1)),
        mean_steps=Avg("steps", filter=Q(state=State.DONE)),
    )
    bin_ = Least(Floor(F("reward") * Value(float(BINS))), Value(BINS - 1.0))
    binned = rollout.episodes.exclude(reward=None).annotate(bin=bin_).values_list("family", "bin")
    tally = {(family, int(b)): count for family, b, count in binned.annotate(Count("pk"))}
    return [
        FamilyFigures(
            family=row["family"],
            done=row["done"],
            broken=row["broken"],
            mean=row["mean"],
            full=row["full"],
            steps=row["mean_steps"],
            bars=bars(
                (f"{n / BINS:g} to {(n + 1) / BINS:g}", tally.get((row["family"], n), 0))
                for n in range(BINS)
            ),
        )
        for row in rows.order_by("family")
    ]


def using(alive: list[RolloutWorker]) -> dict[str, Any]:
    """Return the workers and how busy they keep environments and policy slots together."""
    slots = sum(row.slots for row in alive)
    environments = sum(row.environments for row in alive)

    def share(name: str, size: str, total: int) -> float | None:
        busy = sum(row.busy.get(name, 0.0) * getattr(row, size) for row in alive)
        return 100 * busy / total if total else None

    return {
        "rows": alive,
        "environments": share("environments", "environments", environments),
        "policy": share("policy", "slots", slots),
        "waiting": sum(row.busy.get("waiting", 0) for row in alive),
        "steps_per_s": sum(row.busy.get("steps_per_s", 0.0) for row in alive),
    }


def series(rollout: Rollout) -> list[dict[str, float | None]]:
    """Return points {minute, per_hour, reward} since the start, at most MAX_POINTS."""
    if rollout.started_at is None:
        return []
    rows = list(
        rollout.episodes.filter(state=State.DONE)
        .values_list("finished_at", "reward")
        .order_by("finished_at")
    )
    end = rollout.finished_at or timezone.now()
    length = (end - rollout.started_at).total_seconds()
    width = max(10.0, math.ceil(length / MAX_POINTS / 10) * 10.0)
    bins: dict[int, list[float | None]] = {}
    for at, reward in rows:
        bins.setdefault(_bin(at, rollout.started_at, width), []).append(reward)
    whole = int(length // width) + (rollout.finished_at is not None)
    points: list[dict[str, float | None]] = []
    for n in range(whole):
        rewards = [r for r in bins.get(n, []) if r is not None]
        seconds = min(width, length - n * width) or width
        points.append({
            "minute": round((n + 1) * width / 60, 3),
            "per_hour": round(len(bins.get(n, [])) / seconds * 3600, 1),
            "reward": round(sum(rewards) / len(rewards), 4) if rewards else None,
        })  # fmt: skip
    return points


def bars(rows: Any) -> list[Bar]:
    """Return (label, count) as bars."""
    found = list(rows)
    longest = max((count for _, count in found), default=0) or 1
    return [Bar(label, count, 100 * count / longest) for label, count in found]


def _bin(at: datetime, start: datetime, width: float) -> int:
    return int(max((at - start).total_seconds(), 0.0) // width)
