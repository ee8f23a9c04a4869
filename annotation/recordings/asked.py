"""What contributors are asked for: the consent in force, and the tasks that want recordings."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.models import Consent, Offer, Recording, Task

GONE = (Recording.Status.FAILED, Recording.Status.REJECTED, Recording.Status.WITHDRAWN)


def consent() -> Consent:
    """Return the newest consent."""
    return Consent.objects.latest("pk")


def live(user: User) -> QuerySet[Offer]:
    """Return what is kept for `user` at this moment and not recorded yet."""
    return _unanswered().filter(user=user)


def tasks(user: User) -> QuerySet[Task]:
    """Return the tasks that want more recordings and may be offered to `user`, neediest first.

    Not those that `user` recorded or let pass, nor those whose last wanted recordings are kept for others.
    """
    mine = Recording.objects.filter(task=OuterRef("pk"), owner=user)
    passed = Offer.objects.filter(task=OuterRef("pk"), user=user, expires_at__lte=timezone.now())
    others = _unanswered().exclude(user=user)
    return (
        counted(others)
        .filter(~Exists(mine), ~Exists(passed), state=Task.State.OPEN)
        .filter(come__lt=F("needed") - F("held"))
        .order_by("-priority", "come", "pk")
    )


def counted(offers: QuerySet[Offer] | None = None) -> QuerySet[Task]:
    """Return the tasks that are recorded, with `come` recordings and `held` open `offers` (all)."""
    came = Recording.objects.exclude(status__in=GONE)
    offers = _unanswered() if offers is None else offers
    rows = Task.objects.exclude(recorded_as="")
    return rows.annotate(come=_number(came), held=_number(offers))


def _unanswered() -> QuerySet[Offer]:
    sent = Recording.objects.filter(task=OuterRef("task"), owner=OuterRef("user"))
    return Offer.objects.filter(~Exists(sent), expires_at__gt=timezone.now())


def _number(rows: QuerySet[Offer] | QuerySet[Recording]) -> Coalesce:
    """Count the rows of each task."""
    of_task = rows.filter(task=OuterRef("pk")).order_by().values("task")
    number = of_task.annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(number, output_field=IntegerField()), 0)
