"""The pages of evaluations: who may, what they show while it runs and afterwards, what they keep."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from agent.models import Deployment
from sandbox.families import TaskSpec, checksum
from tests.training.rollout_toys import toys  # noqa: F401
from training.evaluations import evaluations, suites
from training.models import Episode, Evaluation, Rollout

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("toys")]


@pytest.fixture
def staff(client, admin_user):
    client.force_login(admin_user)
    return client


@pytest.fixture
def deployment():
    return Deployment.objects.create(name="paper", kind="scripted", reads="elements", version="v1")


@pytest.fixture(autouse=True)
def smoke(monkeypatch):
    """Let the smoke suite be of paper."""
    tasks = [
        TaskSpec("toys", f"n{n}", "1", checksum("toys", n), width=160, height=210) for n in (2, 9)
    ]
    recipe = suites._Recipe("Of paper", 1, lambda: tasks)
    monkeypatch.setitem(suites._RECIPES, "smoke", recipe)


@pytest.fixture
def make(deployment):
    def make(name, solved, *, state=Rollout.State.DONE):
        """Make an evaluation of 2 tasks and 10 seeds, of which the first `solved` seeds succeed."""
        row = evaluations.begin(
            name=name, suite=suites.load("smoke"), deployment=deployment, seeds=range(10),
            max_steps=9,
        )  # fmt: skip
        played = row.rollout.episodes
        values = {"state": "done", "steps": 4, "versions": ["v1"], "outcome": "ended"}
        played.filter(seed__lt=solved).update(reward=1.0, **values)
        played.filter(seed__gte=solved).update(reward=0.0, **values)
        if state == Rollout.State.DONE:
            played.filter(task="n9", seed=9).update(state="broken", reward=None, attempts=3)
        else:
            played.filter(seed=9).update(state="waiting", reward=None)
        Rollout.objects.filter(pk=row.rollout_id).update(state=state)
        return Evaluation.objects.get(pk=row.pk)

    return make


def addresses(row):
    plain = ("evaluations", "new-evaluation", "compare-evaluations")
    yield from (reverse(f"training:{name}") for name in plain)
    for name in ("evaluation", "evaluation-panel", "evaluation-episodes"):
        yield reverse(f"training:{name}", args=[row.pk])
    yield from (
        reverse("training:export-evaluation", args=[row.pk, f]) for f in ("json", "csv", "md")
    )


def test_only_staff_see_evaluations(client, stranger, annotator, make):
    row = make("e", 5)
    for address in addresses(row):
        client.logout()
        assert "/accounts/login/" in client.get(address)["Location"]
        for person in (stranger, annotator):
            client.force_login(person)
            assert client.get(address).status_code == 403
            assert (
                client.post(reverse("training:cancel-evaluation", args=[row.pk])).status_code == 403
            )


def test_every_page_is_there_and_names_the_observation(staff, make):
    row = make("e", 5)
    for address in addresses(row):
        assert staff.get(address).status_code in (200, 286)
    page = staff.get(reverse("training:evaluation", args=[row.pk])).content.decode()
    assert "reading <strong>elements</strong>" in page
    assert "toys/n9" in page
    curve = json.loads(re.search(r'id="curve-points"[^>]*>(.*?)</script>', page)[1])
    assert (curve[0]["steps"], curve[-1]["steps"]) == (1, 9)
    assert staff.get(reverse("training:export-evaluation", args=[row.pk, "xls"])).status_code == 404
    assert staff.get("/admin/training/evaluation/").status_code == 200


def test_a_live_one_asks_again_and_an_ended_one_stops(staff, make):
    row = make("e", 5, state=Rollout.State.RUNNING)
    page = staff.get(reverse("training:evaluation", args=[row.pk])).content.decode()
    assert "every 3s" in page
    assert "18 of 20 episodes" in page
    panel = reverse("training:evaluation-panel", args=[row.pk])
    assert staff.get(panel).status_code == 200
    staff.post(reverse("training:cancel-evaluation", args=[row.pk]))
    assert staff.get(panel).status_code == 286
    row.refresh_from_db()
    assert row.results["overall"]["cancelled"] == 2
    again = staff.post(reverse("training:cancel-evaluation", args=[row.pk]), follow=True)
    assert b"is cancelled already" in again.content


def test_an_evaluation_is_begun_from_the_form(staff, deployment, admin_user):
    values = {
        "suite": "smoke", "deployment": deployment.pk, "seeds": "5:8", "max_steps": "7",
        "repeats": "2", "name": "",
    }  # fmt: skip
    answer = staff.post(reverse("training:new-evaluation"), values)
    row = Evaluation.objects.get()
    assert answer["Location"] == reverse("training:evaluation", args=[row.pk])
    assert (row.name, row.seeds, row.max_steps, row.repeats) == ("smoke-paper-1", [5, 6, 7], 7, 2)
    assert (row.rollout.total, row.rollout.created_by) == (12, admin_user)
    wrong = staff.post(
        reverse("training:new-evaluation"), values | {"seeds": "8:5", "name": row.name}
    )
    assert b"has no seed: say A:B" in wrong.content
    assert b'value="8:5"' in wrong.content
    taken = staff.post(reverse("training:new-evaluation"), values | {"name": row.name})
    assert b"there is an evaluation called" in taken.content
    assert Evaluation.objects.count() == 1


def test_a_suite_that_is_empty_here_is_an_error_on_the_form(staff, deployment, monkeypatch):
    monkeypatch.setitem(suites._RECIPES, "smoke", suites._Recipe("Nothing", 1, list))
    values = {
        "suite": "smoke", "deployment": deployment.pk, "seeds": "1", "max_steps": "7",
        "repeats": "1",
    }  # fmt: skip
    answer = staff.post(reverse("training:new-evaluation"), values)
    assert b"suite smoke is empty" in answer.content


def test_the_episodes_are_found_by_task_and_result(staff, make):
    address = reverse("training:evaluation-episodes", args=[make("e", 5).pk])
    for query, count in [
        ({}, 20), ({"task": "toys/n2"}, 10), ({"result": "solved"}, 10),
        ({"task": "toys/n9", "result": "missed"}, 4), ({"result": "broken"}, 1),
    ]:  # fmt: skip
        assert len(staff.get(address, query).context["page"]) == count
    assert "No such episode" in staff.get(address, {"task": "toys/n1"}).content.decode()


def test_two_are_compared_and_the_difference_is_said_in_words(staff, make):
    first, second = make("old", 2), make("new", 9)
    address = reverse("training:compare-evaluations")
    page = staff.get(f"{address}?evaluations={second.pk}&evaluations={first.pk}")
    text = page.content.decode()
    assert "new is better than old with confidence" in text
    assert page.context["found"].pairs == 19
    assert page.context["changed"] == []
    one = staff.get(f"{address}?evaluations={first.pk}")
    assert "Choose two" in one.content.decode()
    assert staff.get(f"{address}?evaluations=99999").status_code == 404


def test_a_task_that_changed_meanwhile_is_named(staff, make):
    first, second = make("old", 2), make("new", 9)
    tasks = second.tasks
    tasks[0]["checksum"] = "other"
    Evaluation.objects.filter(pk=second.pk).update(tasks=tasks)
    address = reverse("training:compare-evaluations")
    page = staff.get(f"{address}?evaluations={first.pk}&evaluations={second.pk}")
    assert "1 task changed" in page.content.decode()


def test_what_pages_say_is_escaped(staff, make):
    row = make("e", 5)
    Episode.objects.update(verdict={"detail": "<script>alert(1)</script>"})
    page = staff.get(reverse("training:evaluation-episodes", args=[row.pk])).content.decode()
    assert "<script>alert" not in page
