"""Who gets which row: the author, a reviewer, a stranger, the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from annotation import access
from annotation.models import Session, Step, Task
from annotation.tasks import tasks

SHA = "ab" * 32


@pytest.fixture
def row(annotator: Any) -> Session:
    task = tasks.create(external_id="a", instruction="Do it.")
    session = Session.objects.create(task=task, author=annotator, expires_at="2030-01-01T00:00Z")
    Step.objects.create(
        session=session, index=0, observation={}, screenshot=SHA, action={}, actor="human",
        action_id="1",
    )  # fmt: skip
    return session


def may(function: Any, *args: Any) -> bool:
    try:
        function(*args)
    except access.Denied:
        return False
    return True


def set_status(row: Session, status: str) -> None:
    Session.objects.filter(pk=row.pk).update(status=status)


@pytest.mark.parametrize("status", Session.Status.values)
def test_a_live_session_is_its_authors_and_the_admins(
    row: Session, annotator: Any, reviewer: Any, stranger: Any, admin_user: Any, status: str
) -> None:
    set_status(row, status)
    seen = {
        person: may(access.session_for, person, row.pk)
        for person in (annotator, reviewer, stranger, admin_user)
    }
    finished = status in access.REVIEWABLE
    assert seen == {annotator: True, reviewer: finished, stranger: False, admin_user: True}
    assert not may(access.session_for, AnonymousUser(), row.pk)


def test_only_the_author_acts(
    row: Session, annotator: Any, reviewer: Any, stranger: Any, admin_user: Any
) -> None:
    assert may(access.own_session_for, annotator, row.pk)
    for person in (reviewer, stranger, admin_user, AnonymousUser()):
        assert not may(access.own_session_for, person, row.pk)


def test_a_picture_goes_to_whoever_may_see_a_session_with_it(
    row: Session, annotator: Any, reviewer: Any, stranger: Any, admin_user: Any
) -> None:
    assert may(access.blob_for, annotator, SHA)
    assert may(access.blob_for, admin_user, SHA)
    assert not may(access.blob_for, reviewer, SHA)
    set_status(row, Session.Status.SUBMITTED)
    assert may(access.blob_for, reviewer, SHA)
    assert not may(access.blob_for, stranger, SHA)
    assert not may(access.blob_for, admin_user, "cd" * 32)


def test_the_review_queue_never_holds_ones_own(
    row: Session, annotator: Any, reviewer: Any, stranger: Any, admin_user: Any
) -> None:
    set_status(row, Session.Status.SUBMITTED)
    annotator.groups.add(*reviewer.groups.all())
    assert list(access.review_queue(reviewer)) == [row]
    assert list(access.review_queue(admin_user)) == [row]
    for person in (annotator, stranger, AnonymousUser()):
        assert list(access.review_queue(person)) == []
    assert may(access.review_for, reviewer, row.pk)
    assert not may(access.review_for, annotator, row.pk)


def test_tasks_are_the_admins_and_of_those_who_worked_on_them(
    row: Session, annotator: Any, reviewer: Any, stranger: Any, admin_user: Any
) -> None:
    Task.objects.create(external_id="b", instruction="Another.")
    assert access.tasks_for(admin_user).count() == 2
    assert list(access.tasks_for(annotator)) == [row.task]
    assert not access.tasks_for(reviewer).exists()
    assert not may(access.task_for, stranger, row.task_id)


def test_who_left_sees_nothing(row: Session, annotator: Any) -> None:
    annotator.is_active = False
    annotator.save()
    assert not may(access.session_for, annotator, row.pk)
    assert not access.is_annotator(annotator)
