"""The admins' pages on what contributors record, and what a recorder is given."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.contributing import dispatch, graph, queries
from annotation.models import Application, Function, Query, QueryRequest
from tests.annotation.recorded import Sender
from tests.annotation.test_recordings_upload import token_of

pytestmark = pytest.mark.django_db

NUMBERS = {"coverage": "0.9", "engagement": "0.5", "penetration": "0.4"}
QUERY = {
    "text": "Find what Ada sent", "level": "novice", "kind": "demonstration", "wanted": "2",
    "steps": "2", "pages": "1", "prerequisites": "1", "exceptions": "1",
}  # fmt: skip


@pytest.fixture
def admin(admin_user: User) -> Client:
    client = Client()
    client.force_login(admin_user)
    return client


@pytest.fixture
def mail(db: None) -> Application:
    return Application.objects.create(name="Mail")


@pytest.fixture
def search(mail: Application) -> Function:
    return graph.save_function(Function(application=mail, name="Search", benefit=0.5))


def test_from_an_empty_page_to_a_published_query(admin: Client) -> None:
    assert b"No application yet" in admin.get(reverse("contributing")).content
    new = reverse("contributing-new-application")
    assert admin.get(new).status_code == 200
    wrong = admin.post(new, {"name": "Mail", **NUMBERS, "coverage": "7"})
    assert wrong.status_code == 400 and b"less than or equal to 1" in wrong.content
    page = admin.post(new, {"name": "Mail", **NUMBERS}, follow=True)
    mail = page.context["application"]
    assert b"Score 0.60" in page.content and b"No function yet" in page.content
    worth = {"name": "Search", "frequency": "10", "benefit": "0.5", "transfer": "0"}
    page = admin.post(reverse("contributing-new-function", args=[mail.pk]), worth, follow=True)
    search = page.context["function"]
    below = reverse("contributing-new-function", args=[mail.pk]) + f"?parent={search.pk}"
    assert b"selected>Search" in admin.get(below).content
    admin.post(below, {**worth, "name": "By sender", "parent": search.pk})
    twice = admin.post(below, {**worth, "name": "By sender", "parent": search.pk})
    assert twice.status_code == 400 and b"already exists" in twice.content
    tree = admin.get(reverse("contributing-application", args=[mail.pk])).content.decode()
    assert tree.index(">Search</a>") < tree.index(">By sender</a>")
    new = reverse("contributing-new-query", args=[search.pk])
    assert admin.get(new).status_code == 200
    page = admin.post(new, QUERY, follow=True)
    (query,) = page.context["queries"]
    assert (query.difficulty, query.band, query.state) == (5, "medium", "written")
    page = admin.post(reverse("contributing-publish", args=[query.pk]), follow=True)
    assert b"Retire" in page.content
    shown = admin.get(reverse("contributing")).content
    assert b"of 2 recorded" in shown
    edit = reverse("contributing-query", args=[query.pk])
    assert b"0 of 2 recorded" in admin.get(edit).content
    page = admin.post(edit, {**QUERY, "text": "Another"})
    assert page.status_code == 400 and b"retire it and write another" in page.content
    assert admin.post(edit, {**QUERY, "wanted": "4"}).status_code == 302
    refused = admin.post(reverse("contributing-delete-application", args=[mail.pk]))
    assert refused.status_code == 409 and b"retire those first" in refused.content
    admin.post(reverse("contributing-retire", args=[query.pk]))
    assert admin.post(reverse("contributing-delete-function", args=[search.pk])).status_code == 302
    assert admin.post(reverse("contributing-delete-application", args=[mail.pk])).status_code == 302
    assert not Application.objects.exists() and not Query.objects.exists()


def test_the_weights_change_what_counts(admin: Client, mail: Application) -> None:
    page = reverse("contributing-settings")
    assert admin.get(page).status_code == 200
    form = {f"{name}_weight": "1" for name in
            ("coverage", "engagement", "penetration", "frequency", "benefit", "transfer")}  # fmt: skip
    form |= {"offer_hours": "48", "retain_days": "90"}
    assert admin.post(page, {**form, "coverage_weight": "-1"}).status_code == 400
    assert admin.post(page, {**form, "coverage_weight": "3"}).status_code == 302
    project = graph.project()
    assert (project.coverage_weight, project.retain_days) == (3.0, 90)
    assert b"deleted 90 days after you gave it" in admin.get(reverse("recordings")).content


def test_asking_a_model_needs_one(admin: Client, search: Function) -> None:
    refused = admin.post(reverse("contributing-ask", args=[search.pk]), {"level": "novice"})
    assert refused.status_code == 409 and b"choose one" in refused.content
    QueryRequest.objects.create(function=search, level="novice", status="failed", cause="it <b>")
    shown = admin.get(reverse("contributing-function", args=[search.pk])).content
    assert b"it &lt;b&gt;" in shown


def test_an_import_checks_then_writes(admin: Client) -> None:
    page = reverse("contributing-import")
    assert b"Three kinds of record" in admin.get(page).content
    text = '{"record": "application", "application": "Mail", "coverage": 2}'
    wrong = admin.post(page, {"text": text, "format": "jsonl", "do": "import"})
    assert wrong.status_code == 400 and b"<code>coverage</code>" in wrong.content
    text = text.replace("2}", "0.2}")
    checked = admin.post(page, {"text": text, "format": "jsonl", "do": "check"})
    assert b"1 record can be imported" in checked.content and not Application.objects.exists()
    assert admin.post(page, {"text": text, "format": "jsonl", "do": "import"}).status_code == 302
    assert Application.objects.get().coverage == 0.2


def test_an_import_that_updates_shows_before_and_after_and_the_way_back(
    admin: Client, mail: Application
) -> None:
    page = reverse("contributing-import")
    text = json.dumps({"record": "application", "application": mail.name, "coverage": 0.25})
    form = {"text": text, "format": "jsonl", "update": "on", "do": "import"}
    before = mail.coverage
    shown = admin.post(page, form)  # not seen yet: nothing is written
    mail.refresh_from_db()
    assert b"What changes" in shown.content and mail.coverage == before
    agreed = re.search(rb'name="agreed" value="(\w+)"', shown.content)
    assert agreed is not None and f"{before}".encode() in shown.content
    done = admin.post(page, {**form, "agreed": agreed[1].decode()})
    mail.refresh_from_db()
    assert mail.coverage == 0.25 and b"Take it back" in done.content
    undo = html.unescape(done.content.decode().split("<textarea")[1].split(">")[1].split("</")[0])
    assert json.loads(undo)["coverage"] == before
    assert b"coverage" in admin.get(f"/admin/annotation/application/{mail.pk}/history/").content


def test_they_are_for_admins_alone(annotator: User, search: Function) -> None:
    client = Client()
    for name, arguments in (
        ("contributing", []), ("contributing-settings", []), ("contributing-import", []),
        ("contributing-new-application", []),
        ("contributing-application", [search.application_id]),
        ("contributing-function", [search.pk]), ("contributing-new-query", [search.pk]),
    ):  # fmt: skip
        assert client.get(reverse(name, args=arguments)).status_code == 302
    client.force_login(annotator)
    for name, arguments in (("contributing", []), ("contributing-function", [search.pk])):
        assert client.get(reverse(name, args=arguments)).status_code == 403
    for name in ("contributing-delete-function", "contributing-ask"):
        assert client.post(reverse(name, args=[search.pk])).status_code == 403


def test_django_s_admin_shows_them_all(admin: Client, search: Function, admin_user: User) -> None:
    row = Query(function=search, text="Find a")
    queries.publish(queries.write(row, by=admin_user, also=[]))
    dispatch.take(admin_user)
    graph.project()
    for name, word in (
        ("project", b"the project"), ("application", b"Mail"), ("function", b"Search"),
        ("query", b"Find a"), ("offer", b"query/"),
    ):  # fmt: skip
        assert word in admin.get(f"/admin/annotation/{name}/").content
    page = f"/admin/annotation/application/{search.application_id}/change/"
    assert admin.post(page, {"name": "Mail", **NUMBERS, "coverage": "7"}).status_code == 200
    assert admin.post(page, {"name": "Mail", **NUMBERS}).status_code == 302
    assert Application.objects.get().coverage == 0.9


def test_a_recorder_gets_what_is_its_turn(
    search: Function, stranger: User, admin_user: User
) -> None:
    sender = Sender(token_of(stranger))

    def ask(**body: Any) -> Any:
        return sender.post("/api/recorder/tasks/next", body)

    assert ask().status_code == 404
    for text in ("Find a", "Find b"):
        row = Query(function=search, text=text, kind="exploration")
        queries.publish(queries.write(row, by=admin_user, also=[]))
    first = ask().json()
    assert (first["instruction"], first["kind"], first["title"]) == (
        "Find a",
        "exploration",
        "Mail",
    )
    assert ask(kind="exploration").json() == first
    assert ask(kind="demonstration").status_code == 404
    assert ask(another=True).json()["instruction"] == "Find b"
    for wrong in ({"kind": "song"}, {"another": "yes"}, {"kind": ["x"]}):
        assert (ask(**wrong).status_code, ask(**wrong).json()["error"]) == (400, "bad_field")
