"""What contributors are asked for: scores, trees, queries, whose turn it is, and what is kept how long."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from agent import deployments
from agent.models import Deployment
from agent.policy import PolicyUnreachable
from annotation.contributing import dispatch, graph, proposing, queries, scores
from annotation.contributing.scores import Cell
from annotation.errors import BadInput, Refused
from annotation.models import Application, Function, Offer, Query, QueryRequest, Recording, Task
from annotation.recordings import asked, rights
from tests.annotation.recorded import Recorded, Sender
from tests.annotation.test_recordings_upload import token_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def mail() -> Application:
    return Application.objects.create(name="Mail", coverage=0.9, engagement=0.6, penetration=0.3)


def function(
    mail: Application, name: str, *, parent: Function | None = None, **worth: float
) -> Function:
    row = Function(application=mail, parent=parent, name=name, **worth)
    return graph.save_function(row)


def query(
    where: Function, by: User, text: str, *, hard: int = 0, wanted: int = 1, **more: Any
) -> Query:
    rubric = dict(zip(Query.RUBRIC, [min(3, max(0, hard - 3 * n)) for n in range(4)], strict=True))
    row = Query(function=where, text=text, wanted=wanted, **rubric, **more)
    return queries.publish(queries.write(row, by=by, also=[]))


def recorded(task: Task, user: User, status: str = "uploading") -> Recording:
    return Recording.objects.create(
        name=f"{Recording.objects.count():032x}", owner=user, task=task, kind="demonstration",
        consent=asked.consent(), about={}, manifest_sha256="0" * 64, bytes=1,
        confirmed_at=timezone.now(), status=status,
    )  # fmt: skip


def test_scores_are_weighted_means(mail: Application) -> None:
    project = graph.project()
    assert scores.score(mail, project) == pytest.approx(0.6)
    project.coverage_weight, project.engagement_weight, project.penetration_weight = 1, 0, 0
    assert scores.score(mail, project) == pytest.approx(0.9)
    project.coverage_weight = 0
    assert scores.score(mail, project) == 0.0
    some = Function(frequency=50, benefit=0.5, transfer=1.0)
    assert scores.importance(some, project, most=100) == pytest.approx(2 / 3)
    assert [scores.importance_band(one) for one in (0, 0.33, 0.34, 0.7, 1)] == [
        "low", "low", "middle", "high", "high",
    ]  # fmt: skip
    bands = [scores.difficulty_band(Query(steps=min(3, n), pages=max(0, min(3, n - 3)),
             prerequisites=max(0, min(3, n - 6)), exceptions=max(0, n - 9))) for n in range(13)]  # fmt: skip
    assert bands == ["easy"] * 5 + ["medium"] * 4 + ["hard"] * 4


def test_a_tree_shows_what_matters_first_and_has_no_rings(mail: Application) -> None:
    search = function(mail, "Search", frequency=10)
    function(mail, "Write", frequency=100, benefit=1, transfer=1)
    by_sender = function(mail, "By sender", parent=search, benefit=0.6)
    first, second = graph.tree(mail)
    assert (first.function.name, first.importance, first.band) == ("Write", 1.0, "high")
    assert [node.function.name for node in second.children] == ["By sender"]
    assert [one.name for one in graph.path(by_sender)] == ["Search", "By sender"]
    search.parent = by_sender
    with pytest.raises(BadInput, match="below itself"):
        graph.save_function(search)
    with pytest.raises(BadInput, match=r"already exists|unique|violated"):
        function(mail, "Write")
    other = Application.objects.create(name="Sheet")
    with pytest.raises(BadInput, match="another application"):
        function(other, "Sum", parent=by_sender)
    above = by_sender
    for level in range(3, graph.DEPTH + 1):
        above = function(mail, f"level {level}", parent=above)
    with pytest.raises(BadInput, match="levels"):
        function(mail, "too deep", parent=above)
    with pytest.raises(BadInput, match="benefit"):
        function(mail, "Odd", benefit=1.5)
    with pytest.raises(IntegrityError), transaction.atomic():
        Function.objects.filter(pk=above.pk).update(benefit=float("nan"))


def test_a_query_becomes_a_task_whose_words_stay(mail: Application, admin_user: User) -> None:
    where = function(mail, "Search")
    row = query(where, admin_user, "Find  the\nreceipt", wanted=3)
    task = row.task
    assert (task.instruction, task.recorded_as, task.needed) == (
        "Find the receipt",
        "demonstration",
        3,
    )
    assert queries.publish(row).task_id == task.pk
    row.text = "Find something else"
    with pytest.raises(Refused, match="retire it"):
        queries.write(row, by=admin_user, also=[])
    row.refresh_from_db()
    row.wanted = 5
    queries.write(row, by=admin_user, also=[])
    task.refresh_from_db()
    assert task.needed == 5
    for delete, what in ((graph.delete_function, where), (graph.delete_application, mail)):
        with pytest.raises(Refused, match="retire those first"):
            delete(what)
    queries.retire(row)
    with pytest.raises(Refused, match="retired"):
        queries.publish(row)
    assert dispatch.take(admin_user) is None
    graph.delete_application(mail)
    assert Task.objects.get().state == Task.State.RETIRED
    with pytest.raises(BadInput, match="its own is clear"):
        queries.write(Query(function=where, text="x"), by=admin_user, also=[mail])


def test_the_least_covered_cell_comes_first(
    mail: Application, admin_user: User, stranger: User, annotator: User, reviewer: User
) -> None:
    much = function(mail, "Write", frequency=100, benefit=1, transfer=1)
    little = function(mail, "Print", frequency=1)
    easy = query(much, admin_user, "Write to Ada", wanted=2)
    query(much, admin_user, "Answer Ada", wanted=2)
    hard = query(much, admin_user, "Move all filters", hard=12, wanted=1)
    rare = query(little, admin_user, "Print it", wanted=1)
    # Nothing is covered: the important ones first, of these the cell stands before the number.
    assert dispatch.take(stranger).pk == easy.task_id
    cells = dispatch.coverage()
    assert (cells[Cell("high", "easy")].wanted, cells[Cell("high", "easy")].held) == (4, 1)
    assert dispatch.take(annotator).pk == hard.task_id
    assert dispatch.take(reviewer).pk == rare.task_id
    # The hard and the rare one are kept for their people; the easy cell is a quarter covered.
    recorded(easy.task, stranger)
    third = dispatch.take(stranger)
    assert third.instruction == "Answer Ada"
    cells = dispatch.coverage()
    assert (cells[Cell("high", "easy")].come, cells[Cell("high", "easy")].held) == (1, 1)
    assert (cells[Cell("high", "hard")].come, cells[Cell("high", "hard")].held) == (0, 1)


def test_nobody_gets_a_task_twice_and_no_two_get_one(
    mail: Application, admin_user: User, stranger: User, annotator: User
) -> None:
    where = function(mail, "Search")
    first, second = (query(where, admin_user, text) for text in ("Find a", "Find b"))
    assert dispatch.take(stranger) == first.task == dispatch.take(stranger)
    assert list(asked.tasks(annotator)) == [second.task]
    assert dispatch.take(annotator) == second.task
    assert dispatch.take(annotator, another=True) is None
    # What the annotator passed by is free for others, and is never offered to them again.
    assert dispatch.take(stranger, another=True) == second.task
    assert dispatch.take(stranger, another=True) is None
    assert dispatch.take(annotator) == first.task
    Offer.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert dispatch.take(annotator) is None
    assert dispatch.take(admin_user) in (first.task, second.task)


def test_a_task_is_over_when_it_is_recorded_and_comes_again_when_that_fails(
    mail: Application, admin_user: User, stranger: User, annotator: User
) -> None:
    row = query(function(mail, "Search"), admin_user, "Find a")
    assert dispatch.take(stranger) == row.task
    mine = recorded(row.task, stranger)
    assert dispatch.take(annotator) is None
    Recording.objects.filter(pk=mine.pk).update(status="rejected")
    assert dispatch.take(stranger) is None  # recorded it already
    assert dispatch.take(annotator) == row.task


def test_kinds_are_asked_for_apart_and_other_tasks_are_offered_too(
    mail: Application, admin_user: User, stranger: User
) -> None:
    where = function(mail, "Search")
    show = query(where, admin_user, "Find a")
    explore = query(where, admin_user, "Look around", kind="exploration")
    urgent = Task.objects.create(
        external_id="by-hand", instruction="Now", recorded_as="demonstration", priority=9
    )
    assert dispatch.take(stranger, kind="exploration") == explore.task
    assert dispatch.take(stranger, kind="demonstration") == urgent
    assert dispatch.take(stranger, kind="demonstration", another=True) == show.task


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_get_one_task(admin_user: User, stranger: User, annotator: User) -> None:
    mail = Application.objects.create(name="Mail")
    query(function(mail, "Search"), admin_user, "Find a")
    got: list[Task | None] = []
    gate = threading.Barrier(2, timeout=60)

    def ask(user: User) -> None:
        try:
            gate.wait()
            got.append(dispatch.take(user))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(user,)) for user in (stranger, annotator)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(task is None for task in got) == [False, True]


class Writer:
    """A model that answers what it is told to."""

    def __init__(self, text: str | Exception) -> None:
        self.text, self.asked = text, ""

    def say(self, messages: Any) -> Any:
        from agent.rewards.chat import Said

        self.asked = messages[0]["content"]
        if isinstance(self.text, Exception):
            raise self.text
        return Said(self.text, "model-7")


def test_a_model_proposes_and_a_person_publishes(
    mail: Application, admin_user: User, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = function(mail, "By sender", parent=function(mail, "Search"))
    with pytest.raises(Refused, match="settings"):
        proposing.ask(where, level="expert", by=admin_user)
    project = graph.project()
    project.writer = Deployment.objects.create(name="writer", kind="openai")
    graph.save(project)
    query(where, admin_user, "Find what Ada sent")
    answer = [
        {"text": "Find  what Bo sent", "steps": 2, "pages": 9, "exceptions": "many"},
        {"text": "Find what Ada sent"}, {"text": 7}, "odd", {"text": "x" * 9999},
    ]  # fmt: skip
    writer = Writer("Here you are:\n```json\n" + json.dumps(answer) + "\n```")
    monkeypatch.setattr(deployments, "chat", lambda *_, **__: writer)
    row = proposing.ask(where, level="expert", by=admin_user)
    assert proposing.ask(where, level="expert", by=admin_user) == row
    queue.run()
    row.refresh_from_db()
    assert (row.status, row.came) == ("done", 1)
    assert "Search > By sender" in writer.asked and "Find what Ada sent" in writer.asked
    new = Query.objects.get(provenance="model")
    assert (new.text, new.level, new.state, new.model_version) == (
        "Find what Bo sent",
        "expert",
        "written",
        "model-7",
    )
    assert (new.steps, new.pages, new.exceptions) == (2, 3, 0)
    new.wanted = 4
    assert queries.write(new, by=admin_user, also=[]).provenance == "model"
    new.text = "Find what Bo sent in May"
    assert queries.write(new, by=admin_user, also=[]).provenance == "edited"


@pytest.mark.parametrize(
    "said", ["no list", "[]", "[[[", r'[{"text": "half \ud83d"}]', PolicyUnreachable("away")]
)
def test_a_useless_answer_is_said(
    said: Any, mail: Application, admin_user: User, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = graph.project()
    project.writer = Deployment.objects.create(name="writer", kind="openai")
    graph.save(project)
    monkeypatch.setattr(deployments, "chat", lambda *_, **__: Writer(said))
    row = proposing.ask(function(mail, "Search"), level="novice", by=admin_user)
    queue.run()
    row.refresh_from_db()
    assert row.status == "failed" and row.cause and not Query.objects.exists()


def test_a_lost_request_is_asked_again_then_given_up(mail: Application, queue: Any) -> None:
    where = function(mail, "Search")
    lost, old = (QueryRequest.objects.create(function=where, level="novice") for _ in range(2))
    now = timezone.now()
    QueryRequest.objects.filter(pk=lost.pk).update(created_at=now - timedelta(minutes=10))
    QueryRequest.objects.filter(pk=old.pk).update(created_at=now - timedelta(hours=3))
    proposing.reap()
    assert [pk for _, pk in queue] == [lost.pk]
    old.refresh_from_db()
    assert "ask again" in old.cause


def test_recordings_that_were_not_accepted_are_deleted_in_time(stranger: User, queue: Any) -> None:
    sender = Sender(token_of(stranger))
    rows = []
    for _ in range(3):
        made = Recorded()
        assert sender.send(made).status_code == 202
        rows.append(Recording.objects.get(name=made.name))
    waiting, accepted, young = rows
    Recording.objects.filter(pk__in=[waiting.pk, accepted.pk]).update(
        created_at=timezone.now() - timedelta(days=31)
    )
    Recording.objects.filter(pk=accepted.pk).update(status="accepted")
    assert rights.end_retention() == 0
    project = graph.project()
    project.retain_days = 30
    graph.save(project)
    assert rights.end_retention() == 1
    for row in rows:
        row.refresh_from_db()
    assert [row.status for row in rows] == ["withdrawn", "accepted", "uploaded"]
    assert "within 30 days" in waiting.cause and not waiting.files.exists()
    assert young.files.exists() and accepted.files.exists()
    assert rights.end_retention() == 0
