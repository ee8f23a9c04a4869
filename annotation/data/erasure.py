"""Deleting what one person contributed: who that is, what there is of it, and its rows.

Datasets and weights that hold it are training's business: training.erasure calls this. What a person
wrote as a reviewer of others' sessions belongs to those sessions and stays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from annotation.errors import Refused
from annotation.models import (
    Decision,
    DecisionPoint,
    Proposal,
    Pseudonym,
    Recording,
    RecordingFile,
    Session,
    Skip,
    Step,
    Task,
)
from annotation.tasks import tasks
from sandbox.models import InputEvent


class StillGoingOn(Refused):
    """Somebody's session is live: it has to end before it can be deleted."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whose data it is; `user` is None where only the pseudonym is known."""

    name: str
    user: User | None


def person(who: str | User) -> Person:
    """Return who is meant by a pseudonym, or by an account."""
    if isinstance(who, User):
        row = Pseudonym.objects.filter(user=who).first()
        # Somebody without a pseudonym has no session; then nothing is found under this name.
        return Person(row.name if row else who.get_username(), who)
    row = Pseudonym.objects.filter(name=who).select_related("user").first()
    if row is not None and row.user is not None:
        return Person(who, row.user)
    authors = set(
        Session.objects.filter(pseudonym=who).exclude(author=None).values_list("author", flat=True)
    )
    return Person(who, User.objects.get(pk=authors.pop()) if len(authors) == 1 else None)


def sessions_of(whose: Person) -> QuerySet[Session]:
    """Return every session of a person, oldest first."""
    mine = Q(pseudonym=whose.name)
    if whose.user is not None:
        mine |= Q(author=whose.user)
    return Session.objects.filter(mine).order_by("pk")


def recordings_of(whose: Person) -> QuerySet[Recording]:
    """Return every recording that a person gave."""
    return Recording.objects.filter(owner=whose.user) if whose.user else Recording.objects.none()


def counts(whose: Person, sessions: Collection[int]) -> dict[str, int]:
    """Return how many rows would go with a person's sessions, by what they are called."""
    return {
        "sessions": len(sessions),
        "steps": Step.objects.filter(session__in=sessions).count(),
        "proposals": Proposal.objects.filter(decision_point__session__in=sessions).count(),
        "decisions": Decision.objects.filter(step__session__in=sessions).count(),
        "inputs of the hand": _inputs(whose, sessions).count(),
        "recordings": recordings_of(whose).count(),
        "pictures": len(pictures_of(whose, sessions)),
    }


def pictures_of(whose: Person, sessions: Collection[int]) -> set[str]:
    """Return the sha256 of every picture that they show; others may show some of them too.

    All that a person recorded goes with them, sound and events as well.
    """
    mine = RecordingFile.objects.filter(recording__in=recordings_of(whose))
    # What was only announced may be somebody else's.
    recorded = mine.filter(stored=True).order_by()
    found: set[str | None] = set(recorded.values_list("sha256", flat=True).distinct())
    for rows, names in (
        (Step.objects.filter(session__in=sessions), ("screenshot", "observation__screenshot")),
        (
            DecisionPoint.objects.filter(session__in=sessions),
            ("screenshot", "observation__screenshot"),
        ),
        (_inputs(whose, sessions), ("frame", "observation__screenshot")),
    ):
        for name in names:
            found.update(rows.order_by().values_list(name, flat=True).distinct())
    return {sha for sha in found if sha}


def still_shown(pictures: Collection[str]) -> set[str]:
    """Return those of the pictures that a session or a recording of anybody shows."""
    found: set[str] = set()
    for rows, name in (
        (RecordingFile.objects, "sha256"),
        (Step.objects, "screenshot"),
        (DecisionPoint.objects, "screenshot"),
        (InputEvent.objects, "frame"),
        (InputEvent.objects, "observation__screenshot"),
    ):
        shown = rows.filter(**{f"{name}__in": list(pictures)}).order_by()
        found.update(shown.values_list(name, flat=True).distinct())
    return found


def delete(whose: Person, sessions: Collection[int]) -> None:
    """Delete the rows of a person's sessions, and the name; in the caller's transaction.

    Raises StillGoingOn. The tasks are offered again where too few sessions are left.
    """
    rows = Session.objects.filter(pk__in=sessions)
    held = list(rows.select_for_update(of=("self",)).order_by("pk"))
    live = [row for row in held if row.status in Session.LIVE]
    if live:
        raise StillGoingOn(
            f"session {live[0].pk} of {whose.name} is still going on: end it first, then delete"
        )
    _inputs(whose, sessions).delete()
    rows.delete()
    recordings_of(whose).delete()
    if whose.user is not None:
        Skip.objects.filter(user=whose.user).delete()
    Pseudonym.objects.filter(name=whose.name).delete()
    for task in Task.objects.filter(pk__in={row.task_id for row in held}).order_by("pk"):
        tasks.settle(task)


def _inputs(whose: Person, sessions: Collection[int]) -> QuerySet[InputEvent]:
    """What the hand did: also on computers that a session had before its present one."""
    mine = Q(lease__in=Session.objects.filter(pk__in=sessions).values("lease"))
    if whose.user is not None:
        mine |= Q(lease__owner=whose.user)
    return InputEvent.objects.filter(mine)
