"""The only way from a request or a socket to a row. Everything not allowed here is refused.

Annotators see their own sessions; reviewers also finished sessions of others; staff see all.
A refusal is a 404, so that nobody learns what exists.
"""

from __future__ import annotations

from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404

from annotation.models import (
    DecisionPoint,
    Device,
    Recording,
    RecordingFile,
    RecordingReview,
    Session,
    Step,
    Task,
)

Person: TypeAlias = User | AnonymousUser

REVIEWABLE = (
    Session.Status.SUBMITTED,
    Session.Status.RETURNED,
    Session.Status.ACCEPTED,
    Session.Status.REJECTED,
)

# What a reviewer of recordings sees of others'.
JUDGED = (
    Recording.Status.IN_REVIEW,
    Recording.Status.RETURNED,
    Recording.Status.ACCEPTED,
    Recording.Status.REJECTED,
)


class Denied(Http404):
    """Not there, or not for this person: the two look the same."""


def is_annotator(user: Person) -> bool:
    """Whether `user` may take tasks."""
    return _known(user) and (user.is_staff or _in_group(user, "annotator"))


def is_reviewer(user: Person) -> bool:
    """Whether `user` may judge sessions of others."""
    return _known(user) and (user.is_staff or _in_group(user, "reviewer"))


def is_admin(user: Person) -> bool:
    """Whether `user` may import tasks, export and train."""
    return _known(user) and user.is_staff


def sessions_for(user: Person) -> QuerySet[Session]:
    """Return the sessions that `user` may look at."""
    if not _known(user):
        return Session.objects.none()
    if user.is_staff:
        return Session.objects.all()
    seen = Q(author_id=user.pk)
    if is_reviewer(user):
        seen |= Q(status__in=REVIEWABLE)
    return Session.objects.filter(seen)


def session_for(user: Person, session_id: int) -> Session:
    """Return a session that `user` may look at; raises Denied."""
    return _one(sessions_for(user).select_related("task", "lease__sandbox"), session_id)


def own_session_for(user: Person, session_id: int) -> Session:
    """Return a session that `user` may act in: only the author's own; raises Denied."""
    rows = Session.objects.select_related("task", "lease__sandbox", "deployment")
    return _one(rows.filter(author_id=user.pk) if is_annotator(user) else rows.none(), session_id)


def review_queue(user: Person) -> QuerySet[Session]:
    """Return the sessions that wait for `user`'s review, oldest first; never the user's own."""
    if not is_reviewer(user):
        return Session.objects.none()
    rows = Session.objects.filter(status=Session.Status.SUBMITTED).exclude(author_id=user.pk)
    return rows.select_related("task").order_by("finished_at", "pk")


def review_for(user: Person, session_id: int) -> Session:
    """Return a session that `user` may judge now; raises Denied."""
    return _one(review_queue(user), session_id)


def returned_for(user: Person) -> QuerySet[Session]:
    """Return the sessions that came back to `user` with reasons."""
    if not is_annotator(user):
        return Session.objects.none()
    rows = Session.objects.filter(author_id=user.pk, status=Session.Status.RETURNED)
    return rows.select_related("task").order_by("pk")


def tasks_for(user: Person) -> QuerySet[Task]:
    """Return the tasks that `user` may list: staff all, others only those they worked on."""
    if not _known(user):
        return Task.objects.none()
    if user.is_staff:
        return Task.objects.all()
    seen = sessions_for(user).filter(task=OuterRef("pk"))
    return Task.objects.filter(Exists(seen))


def task_for(user: Person, task_id: int) -> Task:
    """Return a task that `user` may look at; raises Denied."""
    task = tasks_for(user).filter(pk=task_id).first()
    if task is None:
        raise Denied("no such task")
    return task


def blob_for(user: Person, sha: str) -> str:
    """Return `sha` if a session that `user` may look at refers to that picture; raises Denied."""
    sessions = sessions_for(user).values("pk")
    for rows in (Step.objects, DecisionPoint.objects):
        if rows.filter(screenshot=sha, session__in=sessions).exists():
            return sha
    if RecordingFile.objects.filter(
        # What was only announced may be anybody's: who names a hash has not shown its bytes.
        sha256=sha, stored=True, path__startswith="frames/", recording__in=recordings_for(user),
    ).exists():  # fmt: skip
        return sha
    raise Denied("no such picture")


def recordings_for(user: Person) -> QuerySet[Recording]:
    """Return the recordings that `user` may look at: one's own, and for reviewers those to judge."""
    if not _known(user):
        return Recording.objects.none()
    seen = Q(owner_id=user.pk)
    if is_reviewer(user):
        seen |= Q(status__in=JUDGED)
    return Recording.objects.filter(seen)


def recording_of(user: Person, name: str) -> Recording:
    """Return a recording that `user` gave; raises Denied."""
    return _recording(Recording.objects.filter(owner_id=user.pk), name)


def recording_for(user: Person, name: str) -> Recording:
    """Return a recording that `user` may look at; raises Denied."""
    return _recording(recordings_for(user), name)


def recordings_to_judge(user: Person) -> QuerySet[Recording]:
    """Return the recordings that wait for `user`'s word, oldest first; never the user's own."""
    if not is_reviewer(user):
        return Recording.objects.none()
    judged = RecordingReview.objects.filter(
        recording=OuterRef("pk"), reviewer=user.pk, round=OuterRef("round")
    )
    rows = Recording.objects.filter(~Exists(judged), status=Recording.Status.IN_REVIEW)
    return rows.exclude(owner_id=user.pk).order_by("uploaded_at", "pk")


def device_for(user: Person, device_id: int) -> Device:
    """Return a recorder that `user` signed in; raises Denied."""
    row = Device.objects.filter(pk=device_id, user_id=user.pk).first()
    if row is None:
        raise Denied("no such recorder")
    return row


def _recording(rows: QuerySet[Recording], name: str) -> Recording:
    row = rows.filter(name=name).select_related("owner", "task").first()
    if row is None:
        raise Denied("no such recording")
    return row


def _one(rows: QuerySet[Session], session_id: int) -> Session:
    session = rows.filter(pk=session_id).first()
    if session is None:
        raise Denied("no such session")
    return session


def _known(user: Person) -> bool:
    return bool(user.is_authenticated and user.is_active)


def _in_group(user: Person, name: str) -> bool:
    return user.groups.filter(name=name).exists()
