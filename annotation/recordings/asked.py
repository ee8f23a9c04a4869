"""What contributors are asked for: the consent in force, and the tasks that want recordings."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from annotation.models import Consent, Recording, Task

GONE = (Recording.Status.FAILED, Recording.Status.REJECTED, Recording.Status.WITHDRAWN)


def consent() -> Consent:
    """Return the newest consent."""
    return Consent.objects.latest("pk")


def tasks(user: User) -> QuerySet[Task]:
    """Return the tasks that want more recordings and that `user` has not recorded, neediest first."""
    mine = Recording.objects.filter(task=OuterRef("pk"), owner=user)
    return (
        Task.objects.filter(~Exists(mine), state=Task.State.OPEN)
        .exclude(recorded_as="")
        .annotate(come=Count("recording", filter=~Q(recording__status__in=GONE)))
        .filter(come__lt=F("needed"))
        .order_by("-priority", "come", "pk")
    )
