"""The queue: one task, one person, whoever asks at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from annotation.errors import BadInput, NoTask
from annotation.models import Session, Task
from annotation.session import sessions
from annotation.tasks import demo, families, tasks
from sandbox.families import UnknownTask


@pytest.mark.django_db(transaction=True)
def test_a_race_for_tasks_gives_each_to_one(queue: Any) -> None:
    people = [User.objects.create_user(f"u{n}") for n in range(24)]
    for n in range(20):
        tasks.create(external_id=str(n), instruction="Do it.")
    together = Barrier(8, timeout=30)

    def start(user: User) -> int | None:
        if user.pk in first:
            together.wait()
        try:
            return sessions.start(user=user).task_id
        except NoTask:
            return None
        finally:
            connection.close()

    first = {user.pk for user in people[:8]}
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(start, people))
    given = [task for task in taken if task is not None]
    assert len(given) == len(set(given))
    # Whoever finds the last rows locked at that moment is told that none is left, and asks again.
    for user, task in zip(people, taken, strict=True):
        if task is None and len(given) < 20:
            given.append(sessions.start(user=user).task_id)
    assert len(set(given)) == 20
    assert not Task.objects.filter(state=Task.State.OPEN).exists()


@pytest.mark.django_db(transaction=True)
def test_a_double_start_of_one_person_is_one_session(annotator: Any, queue: Any) -> None:
    for n in range(4):
        tasks.create(external_id=str(n), instruction="Do it.")
    together = Barrier(4, timeout=30)

    def start(_: int) -> int:
        together.wait()
        try:
            return sessions.start(user=annotator).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(start, range(4)))) == 1
    assert Session.objects.count() == 1
    assert Task.objects.filter(state=Task.State.OPEN).count() == 3


def test_priority_then_age(annotator: Any) -> None:
    tasks.create(external_id="late", instruction="Do it.")
    tasks.create(external_id="urgent", instruction="Do it.", priority=5)
    assert sessions.start(user=annotator).task.external_id == "urgent"


def test_a_retired_task_is_not_given(annotator: Any, task: Task) -> None:
    tasks.retire(task)
    with pytest.raises(NoTask):
        sessions.start(user=annotator)


def test_an_external_id_is_taken_once(task: Task) -> None:
    with pytest.raises(BadInput, match="'ok' exists already"):
        tasks.create(external_id="ok", instruction="Again.")


def test_the_demo_can_be_made_twice(db: None) -> None:
    passwords = {name: f"{name}-pass" for name in ("annotator", "reviewer", "admin")}
    demo.create(passwords)
    people = demo.create(passwords)
    assert Task.objects.count() == len(demo.tasks()) == 24
    assert [p.check_password(passwords[p.username]) for p in people] == [True] * 3
    assert [p.is_staff for p in people] == [False, False, True]


def test_a_familys_desktop_tasks_are_offered_once_per_seed(db: None) -> None:
    names = ["tandem-os-rename", "tandem-os-bluetooth"]
    first = families.offer("osworld", seeds=[0], names=names)
    assert [task.external_id for task in first] == [f"osworld/{name}/0" for name in names]
    assert first[0].verifier == {"kind": "family", "task": "osworld/tandem-os-rename", "seed": 0}
    assert "report.txt" in first[0].instruction
    assert families.offer("osworld", seeds=[0], names=names) == []
    assert len(families.offer("hybrid", seeds=[1, 2])) == 12


def test_tasks_of_pages_alone_are_not_offered(db: None) -> None:
    with pytest.raises(BadInput, match="only on its own pages"):
        families.offer("games", seeds=[0])
    with pytest.raises(UnknownTask, match="osworld has no task 'x'"):
        families.offer("osworld", seeds=[0], names=["x"])
