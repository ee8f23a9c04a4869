"""Verbs of Task: create, claim, skip, retire."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from annotation.errors import BadInput, NoTask
from annotation.models import Session, Skip, Task

# Sessions that count towards `needed`: under way, waiting for a verdict, or accepted.
OCCUPYING = (
    Session.Status.PREPARING,
    Session.Status.ACTIVE,
    Session.Status.SUBMITTED,
    Session.Status.RETURNED,
    Session.Status.ACCEPTED,
)


def create(
    *,
    external_id: str,
    instruction: str,
    domain: str = "",
    pool: str = "",
    setup: list[dict[str, object]] | None = None,
    verifier: dict[str, object] | None = None,
    guidelines: str = "",
    max_steps: int = 30,
    priority: int = 0,
    needed: int = 1,
    recorded_as: str = "",
) -> Task:
    """Create a task; raises BadInput if `external_id` is taken."""
    try:
        with transaction.atomic():
            return Task.objects.create(
                external_id=external_id,
                instruction=instruction,
                domain=domain,
                pool=pool,
                setup=setup or [],
                verifier=verifier or {},
                guidelines=guidelines,
                max_steps=max_steps,
                priority=priority,
                needed=needed,
                recorded_as=recorded_as,
            )
    except IntegrityError:
        raise BadInput(f"external_id: {external_id!r} exists already") from None


def offered(user: User) -> QuerySet[Task]:
    """Return the tasks that the queue would give to `user`.

    Not those that the user skipped, finished or has under way; one whose session expired or failed
    may be tried again.
    """
    mine = Session.objects.filter(task=OuterRef("pk"), author=user).exclude(
        status__in=[Session.Status.EXPIRED, Session.Status.FAILED]
    )
    skipped = Skip.objects.filter(task=OuterRef("pk"), user=user)
    return Task.objects.filter(
        ~Exists(mine), ~Exists(skipped), state=Task.State.OPEN, recorded_as=""
    )


def claim(*, user: User) -> Task:
    """Return an open task for `user`, its row locked until the transaction ends; raises NoTask.

    The caller creates the session in the same transaction and calls `settle`. Rows that others are
    claiming at this moment are passed by.
    """
    waiting = offered(user).select_for_update(skip_locked=True, of=("self",))
    task = waiting.order_by("-priority", "pk").first()
    if task is None:
        raise NoTask("no open task is left for you: import more, or review what is waiting")
    return task


def settle(task: Task) -> Task:
    """Set the task's state from its sessions; the caller holds or gets the row's lock."""
    with transaction.atomic():
        task = Task.objects.select_for_update().get(pk=task.pk)
        if task.state == Task.State.RETIRED:
            return task
        sessions = Session.objects.filter(task=task, mode=Session.Mode.INTERACTIVE)
        if sessions.filter(status=Session.Status.ACCEPTED).count() >= task.needed:
            task.state = Task.State.DONE
        elif sessions.filter(status__in=OCCUPYING).count() >= task.needed:
            task.state = Task.State.CLAIMED
        else:
            task.state = Task.State.OPEN
        task.save(update_fields=["state"])
        return task


def skip(task: Task, *, user: User, reason: str) -> Skip:
    """Remember why `user` passes `task` by; it is not offered to them again."""
    reason = reason.strip()
    if not reason:
        raise BadInput("reason: say why you skip this task")
    row, _ = Skip.objects.update_or_create(task=task, user=user, defaults={"reason": reason[:500]})
    return row


def retire(task: Task) -> Task:
    """Take a task out of the queue for good; sessions under way go on."""
    Task.objects.filter(pk=task.pk).update(state=Task.State.RETIRED)
    task.refresh_from_db()
    return task
