"""Which sessions a dataset would hold: the filters of a freeze, and every session's way by V(s)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from annotation.models import Review, Session
from training.flywheel import Route, route


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a freeze down; empty means all. Dates are days, both ends included, UTC."""

    domain: str = ""
    task: str = ""  # start of the task's external id
    author: str = ""  # pseudonym
    since: dt.date | None = None
    until: dt.date | None = None
    undisputed: bool = False  # leave out where verifier and reviewer disagree

    def to_json(self) -> dict[str, Any]:
        """Return what is kept on the row: only what was asked for."""
        return {
            name: value.isoformat() if isinstance(value, dt.date) else value
            for name, value in asdict(self).items()
            if value
        }


@dataclass(frozen=True, slots=True)
class Preview:
    """How many sessions would go where; `left_out` counts them by reason, the commonest first."""

    sft: int = 0
    ct: int = 0
    disputed: int = 0
    left_out: list[tuple[str, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.sft + self.ct + sum(count for _, count in self.left_out)


def sessions(filters: Filters) -> QuerySet[Session]:
    """Return the sessions that the filters let through, oldest first, each with its `verdict`."""
    newest = Review.objects.filter(session=OuterRef("pk")).order_by("-pk")
    rows = Session.objects.select_related("task").annotate(
        verdict=Subquery(newest.values("verdict")[:1])
    )
    wanted = Q()
    if filters.domain:
        wanted &= Q(task__domain=filters.domain)
    if filters.task:
        wanted &= Q(task__external_id__startswith=filters.task)
    if filters.author:
        wanted &= Q(pseudonym=filters.author)
    if filters.since:
        wanted &= Q(created_at__date__gte=filters.since)
    if filters.until:
        wanted &= Q(created_at__date__lte=filters.until)
    return rows.filter(wanted).order_by("pk")


def routed(filters: Filters) -> Iterator[tuple[Session, Route]]:
    """Yield every session that the filters let through with its way."""
    for session in sessions(filters).iterator(chunk_size=500):
        way = route(
            status=session.status,
            outcome=session.outcome,
            reward=session.reward,
            verdict=session.verdict or "",  # type: ignore[attr-defined]
        )
        if filters.undisputed and way.disputed:
            way = Route(None, f"{way.reason}; disputed sessions are left out")
        yield session, way


def preview(filters: Filters) -> Preview:
    """Count where every session would go; changes nothing."""
    pools: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    disputed = 0
    for _, way in routed(filters):
        disputed += way.disputed
        if way.pool is None:
            reasons[way.reason] += 1
        else:
            pools[way.pool] += 1
    return Preview(pools["sft"], pools["ct"], disputed, reasons.most_common())
