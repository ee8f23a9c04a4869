"""Which sessions and episodes a dataset would hold: the filters of a freeze, and their ways by V(s)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Concat

from annotation.models import Review, Session
from training.data.flywheel import NO_VERIFIER, RIGHT, Route, route, route_episode, route_judged
from training.data.sampling import Success, surplus
from training.errors import BadConfig
from training.models import Episode, Rollout
from training.rewards.judging import Judge

Source = Literal["", "sessions", "episodes"]
Thoughts = Literal["", "without-synthesized"]


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a freeze down; empty means all. Dates are days, both ends included, UTC.

    Domain and author are of sessions: asking for one leaves no episode. From `rollouts` on it is
    about episodes alone: rejection sampling (training.data.sampling), and who judges what no verifier can.
    """

    source: Source = ""
    domain: str = ""
    task: str = ""  # start of the task's id, as miniwob/click-button
    author: str = ""  # pseudonym
    since: dt.date | None = None
    until: dt.date | None = None
    thoughts: Thoughts = ""  # of recordings: all, or without those that a model made up
    rewordings: bool = False  # of recordings: also in other words, as samples of their own
    undisputed: bool = False  # leave out where verifier and reviewer disagree
    rollouts: tuple[str, ...] = ()
    per_seed: int = 0
    per_task: int = 0
    max_steps: int = 0
    min_reward: float = 0.0  # from which on V(s) = 1; 0: RIGHT
    judge: str = ""  # a reward model in force

    def to_json(self) -> dict[str, Any]:
        """Return what is kept on the row: only what was asked for."""
        asked = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, dt.date) else value
            for name, value in asked.items()
            if value not in ("", None, 0, ())  # False is 0
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Filters:
        """Return the filters of a row."""
        values = dict(record)
        for name in ("since", "until"):
            if name in values:
                values[name] = dt.date.fromisoformat(values[name])
        return cls(**values | {"rollouts": tuple(values.get("rollouts", ()))})


@dataclass(frozen=True, slots=True)
class Preview:
    """How many sessions and episodes would go where, and why; the commonest reasons come first.

    `unasked` are episodes that the reward model has not judged yet: it is asked while freezing.
    """

    sft: int = 0
    ct: int = 0
    disputed: int = 0
    unasked: int = 0
    reasons: list[tuple[str, str, int]] = field(default_factory=list)  # pool, reason, how many
    left_out: list[tuple[str, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.sft + self.ct + sum(count for _, count in self.left_out)


def check(filters: Filters) -> None:
    """Raise BadConfig, by field, for rollouts that may not be learnt from and a judge not in force."""
    errors = {}
    found = dict(Rollout.objects.filter(name__in=filters.rollouts).values_list("name", "purpose"))
    for name in filters.rollouts:
        purpose = found.get(name)
        if purpose is None:
            errors["rollouts"] = f"there is no rollout called {name!r}"
        elif purpose == Rollout.Purpose.EVALUATE:
            errors["rollouts"] = (
                f"{name} is an evaluation: who learns from it can't be tested by it"
            )
        elif purpose != Rollout.Purpose.COLLECT:
            errors["rollouts"] = f"{name} belongs to a training run: choose rollouts that collect"
    if filters.judge:
        errors |= Judge.wrong(filters.judge)
    if errors:
        raise BadConfig(errors)


def sessions(filters: Filters) -> QuerySet[Session]:
    """Return the sessions that the filters let through, oldest first, each with its `verdict`."""
    newest = Review.objects.filter(session=OuterRef("pk")).order_by("-pk")
    rows = Session.objects.select_related("task").annotate(
        verdict=Subquery(newest.values("verdict")[:1])
    )
    if filters.source == "episodes":
        return rows.none()
    wanted = _days(filters, "created_at")
    if filters.domain:
        wanted &= Q(task__domain=filters.domain)
    if filters.task:
        wanted &= Q(task__external_id__startswith=filters.task)
    if filters.author:
        wanted &= Q(pseudonym=filters.author)
    return rows.filter(wanted).order_by("pk")


def episodes(filters: Filters) -> QuerySet[Episode]:
    """Return the played episodes that the filters let through, oldest first.

    Of rollouts that collect, and of no others: what was played to evaluate is the test set.
    """
    rows = Episode.objects.filter(
        rollout__purpose=Rollout.Purpose.COLLECT,
        state__in=(Episode.State.DONE, Episode.State.BROKEN),
    ).annotate(name=Concat(F("family"), Value("/"), F("task")))
    if filters.source == "sessions" or filters.domain or filters.author:
        return rows.none()
    wanted = _days(filters, "finished_at")
    if filters.task:
        wanted &= Q(name__startswith=filters.task)
    if filters.rollouts:
        wanted &= Q(rollout__name__in=filters.rollouts)
    light = rows.filter(wanted).defer("verdict", "versions", "failures")
    return light.select_related("rollout").order_by("pk")


def routed(
    filters: Filters, *, judge: Judge | None = None
) -> Iterator[tuple[Session | Episode, Route]]:
    """Yield every session, then every episode that the filters let through, each with its way.

    `judge` is asked about episodes without a verifier. Raises what asking it raises.
    """
    for session in sessions(filters).iterator(chunk_size=500):
        way = route(
            status=session.status,
            outcome=session.outcome,
            reward=session.reward,
            verdict=session.verdict or "",  # type: ignore[attr-defined]
            in_situ=session.mode == Session.Mode.IN_SITU,
        )
        if filters.undisputed and way.disputed:
            way = Route(None, f"{way.reason}; disputed sessions are left out")
        yield session, way
    yield from _sampled(filters, judge)


def preview(filters: Filters) -> Preview:
    """Count where everything would go; changes nothing, and asks no model. Raises BadConfig."""
    check(filters)
    judge = Judge.named(filters.judge, ask=False) if filters.judge else None
    pools: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    disputed = 0
    for _, way in routed(filters, judge=judge):
        disputed += way.disputed
        if way.pool is None:
            left_out[way.reason] += 1
        else:
            pools[way.pool] += 1
            reasons[way.pool, way.reason] += 1
    told = [(pool, reason, count) for (pool, reason), count in reasons.most_common()]
    unasked = judge.unasked if judge else 0
    return Preview(pools["sft"], pools["ct"], disputed, unasked, told, left_out.most_common())


def _sampled(filters: Filters, judge: Judge | None) -> Iterator[tuple[Episode, Route]]:
    needed = filters.min_reward or RIGHT
    ways: list[tuple[Episode, Route]] = []
    for episode in episodes(filters).iterator(chunk_size=500):
        way = route_episode(
            state=episode.state, outcome=episode.outcome, reward=episode.reward, needed=needed
        )
        if judge is not None and way.reason == NO_VERIFIER:
            said = judge.say(episode)
            way = (
                Route(None, f"reward model {judge.name} is asked while freezing")
                if said is None
                else route_judged(judge=judge.name, reward=said.reward, error=said.error)
            )
        ways.append((episode, way))
    left = surplus(
        (
            Success(row.pk, f"{row.family}/{row.task}", row.seed, row.steps)
            for row, way in ways
            if way.value == 1
        ),
        per_seed=filters.per_seed,
        per_task=filters.per_task,
        max_steps=filters.max_steps,
    )
    for row, way in ways:
        yield row, replace(way, reason=left[row.pk], spare=True) if row.pk in left else way


def _days(filters: Filters, when: str) -> Q:
    wanted = Q()
    if filters.since:
        wanted &= Q(**{f"{when}__date__gte": filters.since})
    if filters.until:
        wanted &= Q(**{f"{when}__date__lte": filters.until})
    return wanted
