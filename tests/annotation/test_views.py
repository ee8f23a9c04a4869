"""Pages and verbs over HTTP: who may see what, and how a refusal looks."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotation.errors import MissingThoughts, NoTask, StaleFence, StaleScreen
from annotation.models import Decision, DecisionPoint, Proposal, Session, Step, Task
from annotation.session import pictures
from sandbox.models import Lease, Sandbox

CLICK = {"type": "click", "x": 20, "y": 30, "button": "left", "count": 1, "modifiers": []}


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def post(client, url, **body):
    return client.post(url, json.dumps(body), content_type="application/json")


@pytest.fixture
def task(db) -> Task:
    return Task.objects.create(
        external_id="t-1", instruction="Press <ok>", domain="demo", guidelines="Be quick."
    )


@pytest.fixture
def session(task, annotator) -> Session:
    """A live session of the annotator with three proposals, one of them unreadable."""
    picture = pictures.put(b"\x89PNG not looked at")
    computer = Sandbox.objects.create(name="box", provider="local", host="here")
    lease = Lease.objects.create(
        sandbox=computer, epoch=1, owner=annotator, idempotency_key="k",
        expires_at=timezone.now() + timedelta(minutes=5),
        hard_expires_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    session = Session.objects.create(
        task=task, author=annotator, lease=lease, status=Session.Status.ACTIVE,
        expires_at=timezone.now() + timedelta(minutes=2),
    )  # fmt: skip
    point = DecisionPoint.objects.create(
        session=session, index=0, status=DecisionPoint.Status.READY, screenshot=picture,
        observation={"screenshot": picture, "width": 1280, "height": 720}, model_ms=12,
    )  # fmt: skip
    for rank, action in enumerate([CLICK, {**CLICK, "x": 90}, None], start=1):
        Proposal.objects.create(
            decision_point=point, rank=rank, thought=f"thought {rank}", action=action,
            error="" if action else "no action in the text", model_version="v7",
        )  # fmt: skip
    return session


@pytest.fixture
def submitted(session) -> Session:
    """The same session after one step, waiting for review."""
    point = session.decision_points.get()
    step = Step.objects.create(
        session=session, index=0, observation=point.observation, screenshot=point.screenshot,
        thought="thought 1", action=CLICK, actor="agent", action_id="a-1", state="executed",
    )  # fmt: skip
    Decision.objects.create(
        step=step, decision_point=point, proposal=point.proposals.first(), kind="accepted"
    )
    session.status, session.outcome = Session.Status.SUBMITTED, "finished"
    session.finished_at = timezone.now()
    session.save()
    return session


# -- who may see what ------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["/", "/queue/", "/reviews/", "/tasks/", "/sessions/1/"])
def test_nobody_sees_a_page_before_signing_in(db, url):
    response = Client().get(url)
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        ("annotator", {"/queue/"}),
        ("reviewer", {"/reviews/"}),
        ("stranger", set()),
        ("admin_user", {"/queue/", "/reviews/", "/tasks/", "/tasks/import/"}),
    ],
)
def test_a_role_opens_its_pages_only(request, who, allowed):
    client = signed_in(request.getfixturevalue(who))
    for url in ("/queue/", "/reviews/", "/tasks/", "/tasks/import/"):
        assert client.get(url).status_code == (200 if url in allowed else 403), url


def test_home_leads_everybody_to_their_work(annotator, reviewer, stranger, admin_user):
    assert signed_in(annotator).get("/")["Location"] == "/queue/"
    assert signed_in(reviewer).get("/")["Location"] == "/reviews/"
    assert b"no role yet" in signed_in(stranger).get("/").content
    assert b"Overview" in signed_in(admin_user).get("/").content


def test_a_live_session_is_the_author_s_alone(session, annotator, reviewer, stranger):
    page = signed_in(annotator).get(f"/sessions/{session.pk}/")
    assert page.status_code == 200
    assert "Press &lt;ok&gt;" in page.content.decode()
    for other in (reviewer, stranger):
        assert signed_in(other).get(f"/sessions/{session.pk}/").status_code == 404
        assert post(signed_in(other), f"/sessions/{session.pk}/skip/", fence=1).status_code == 404


def test_a_picture_is_for_those_who_may_see_a_session_with_it(session, annotator, stranger):
    url = f"/blobs/{session.decision_points.get().screenshot}.png"
    response = signed_in(annotator).get(url)
    assert response.status_code == 200
    assert response["Content-Type"] == "image/png"
    assert "immutable" in response["Cache-Control"] and "private" in response["Cache-Control"]
    assert signed_in(stranger).get(url).status_code == 404
    assert signed_in(annotator).get(f"/blobs/{'0' * 64}.png").status_code == 404


# -- the workbench ---------------------------------------------------------------------------------


def test_the_panel_shows_the_proposals_and_says_nothing_twice(session, annotator):
    client = signed_in(annotator)
    response = client.get(f"/sessions/{session.pk}/panel/")
    html = response.content.decode()
    assert "click(20, 30)" in html and "no action in the text" in html and "v7" in html
    version = response.context["version"]
    assert client.get(f"/sessions/{session.pk}/panel/?seen={version}").status_code == 204
    DecisionPoint.objects.update(status=DecisionPoint.Status.FAILED, error="model is away")
    again = client.get(f"/sessions/{session.pk}/panel/?seen={version}")
    assert again.status_code == 200 and "model is away" in again.content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "preparing", "stage": "starting the browser"}, "starting the browser"),
        ({"status": "expired"}, "Resume on a fresh computer"),
        ({"status": "failed", "error": "the screen is gone"}, "the screen is gone"),
        ({"controller": "human"}, "You have mouse and keyboard"),
        ({"outcome": "finished"}, "Checking the result"),
    ],
)
def test_the_panel_names_every_state(session, annotator, changes, words):
    Session.objects.filter(pk=session.pk).update(**changes)
    assert words in signed_in(annotator).get(f"/sessions/{session.pk}/panel/").content.decode()


def decide(session, user, **body):
    point = session.decision_points.get()
    body = {"fence": 1, "decision_point": point.pk, "seen": point.screenshot, **body}
    return post(signed_in(user), f"/sessions/{session.pk}/decide/", **body)


@pytest.fixture
def decided(monkeypatch):
    """What `steps.decide` was called with."""
    calls = []

    def remember(session, **values):
        calls.append(values)
        return Step(index=0)

    monkeypatch.setattr("annotation.session.steps.decide", remember)
    return calls


def test_accepting_carries_the_proposal_as_it_is(session, annotator, decided):
    assert decide(session, annotator, proposal_rank=1, active_ms=900).json()["ok"]
    (call,) = decided
    assert call["action"] == CLICK and call["thought"] == "thought 1"
    assert call["proposal_rank"] == 1 and call["active_ms"] == 900


def test_what_was_typed_replaces_the_proposal(session, annotator, decided):
    decide(session, annotator, proposal_rank=2, command="click(5, 6, right)", thought="mine")
    assert decided[0]["action"] == {**CLICK, "x": 5, "y": 6, "button": "right"}
    assert decided[0]["thought"] == "mine"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"command": "clik(1, 2)"}, "did you mean click"),
        ({"command": "click(5000, 2)"}, "outside the screen"),
        ({"proposal_rank": 3}, "write an action first"),
        ({"proposal_rank": 9}, "there is no proposal 9"),
        ({"fence": "x", "proposal_rank": 1}, "fence must be a whole number"),
        ({"decision_point": 0}, "not one of this session"),
    ],
)
def test_bad_input_is_named(session, annotator, decided, body, message):
    response = decide(session, annotator, **body)
    assert response.status_code == 400
    assert message in response.json()["message"]
    assert decided == []


@pytest.mark.parametrize("error", [StaleFence("moved on"), StaleScreen("it changed")])
def test_a_refusal_is_409_with_its_name(session, annotator, monkeypatch, error):
    def refuse(*args, **values):
        raise error

    monkeypatch.setattr("annotation.session.steps.decide", refuse)
    response = decide(session, annotator, proposal_rank=1)
    assert response.status_code == 409
    assert response.json()["error"] == type(error).__name__
    assert response.json()["message"] == str(error)


def test_missing_thoughts_are_counted_as_people_count(session, annotator, monkeypatch):
    def refuse(*args, **values):
        raise MissingThoughts([2, 4])

    monkeypatch.setattr("annotation.session.sessions.finish", refuse)
    response = post(
        signed_in(annotator), f"/sessions/{session.pk}/finish/", fence=1, outcome="finished"
    )
    assert response.status_code == 409
    assert response.json()["steps"] == [2, 4]
    assert "step 3, 5" in response.json()["message"]


def test_an_old_fence_is_refused_but_its_draft_is_kept(session, annotator):
    Session.objects.filter(pk=session.pk).update(fence=2)
    response = post(
        signed_in(annotator), f"/sessions/{session.pk}/draft/", fence=1, draft={"command": "wait(1"}
    )
    assert response.status_code == 409
    page = signed_in(annotator).get(f"/sessions/{session.pk}/").content.decode()
    assert "wait(1" in page


def test_signed_out_pages_get_a_word_instead_of_a_redirect(session):
    response = post(Client(), f"/sessions/{session.pk}/heartbeat/", fence=1)
    assert response.status_code == 401
    assert response.json()["error"] == "SignedOut"


def test_an_infeasible_task_needs_a_reason(session, annotator):
    response = post(
        signed_in(annotator), f"/sessions/{session.pk}/finish/", fence=1, outcome="failed"
    )
    assert response.status_code == 400
    assert "say why" in response.json()["message"]


# -- the queue -------------------------------------------------------------------------------------


def test_the_queue_shows_what_waits(session, annotator):
    page = signed_in(annotator).get("/queue/").content.decode()
    assert f"/sessions/{session.pk}/" in page and "Go on" in page


def test_an_empty_queue_says_so(annotator, monkeypatch):
    client = signed_in(annotator)
    assert "No open task is left for you" in client.get("/queue/").content.decode()

    def nothing(**values):
        raise NoTask("no open task is left for you")

    monkeypatch.setattr("annotation.session.sessions.start", nothing)
    response = client.post("/queue/start/", follow=True)
    assert "no open task is left for you" in response.content.decode()


# -- review ----------------------------------------------------------------------------------------


def test_nobody_judges_their_own_session(submitted, annotator, reviewer):
    annotator.groups.set(reviewer.groups.all() | annotator.groups.all())
    page = signed_in(annotator).get(f"/reviews/{submitted.pk}/").content.decode()
    assert 'name="verdict"' not in page
    assert f"/reviews/{submitted.pk}/" not in signed_in(annotator).get("/reviews/").content.decode()


def test_a_reviewer_corrects_and_accepts(submitted, reviewer):
    client = signed_in(reviewer)
    assert f"/reviews/{submitted.pk}/" in client.get("/reviews/").content.decode()
    assert 'name="verdict"' in client.get(f"/reviews/{submitted.pk}/").content.decode()
    response = client.post(
        f"/reviews/{submitted.pk}/",
        {
            "verdict": "accepted",
            "mark-0": "wrong",
            "command-0": "click(7, 8)",
            "thought-0": "thought 1",
        },
    )
    assert response.status_code == 302
    submitted.refresh_from_db()
    assert submitted.status == Session.Status.ACCEPTED
    mark = submitted.reviews.get().steps.get()
    assert mark.action["x"] == 7 and mark.thought == "" and mark.mark == "wrong"
    assert submitted.reviews.get().verdict == "corrected"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"verdict": "returned"}, "say why"),
        ({}, "choose a verdict"),
        ({"verdict": "accepted", "command-0": "clik(1)"}, "did you mean click"),
    ],
)
def test_a_bad_verdict_keeps_what_was_typed(submitted, reviewer, data, message):
    response = signed_in(reviewer).post(
        f"/reviews/{submitted.pk}/", {"comment-0": "look here", **data}
    )
    assert response.status_code == 400
    html = response.content.decode()
    assert message in html and "look here" in html
    assert not submitted.reviews.exists()


def test_a_returned_session_shows_its_author_the_reasons(submitted, reviewer, annotator):
    data = {"verdict": "returned", "reasons": "step 1 is unclear"}
    signed_in(reviewer).post(f"/reviews/{submitted.pk}/", data)
    client = signed_in(annotator)
    assert "step 1 is unclear" in client.get("/queue/").content.decode()
    page = client.get(f"/sessions/{submitted.pk}/").content.decode()
    assert "step 1 is unclear" in page and "Send to review again" in page
    thought = post(client, f"/sessions/{submitted.pk}/thought/", step=0, thought="clearer")
    assert thought.json() == {"ok": True, "missing": []}
    assert client.post(f"/sessions/{submitted.pk}/resubmit/").status_code == 302
    submitted.refresh_from_db()
    assert submitted.status == Session.Status.SUBMITTED


# -- tasks -----------------------------------------------------------------------------------------


def test_tasks_are_filtered(task, admin_user):
    client = signed_in(admin_user)
    assert "t-1" in client.get("/tasks/?q=press&state=open&domain=demo").content.decode()
    assert "No task fits" in client.get("/tasks/?q=nothing-like-it").content.decode()
    assert "Be quick." in client.get(f"/tasks/{task.pk}/").content.decode()


def test_an_import_names_lines_and_keeps_the_text(db, admin_user):
    client = signed_in(admin_user)
    text = '{"external_id": "a", "instruction": "do it"}\n{"external_id": "b"}\n'
    response = client.post("/tasks/import/", {"text": text, "format": "jsonl", "do": "import"})
    html = response.content.decode()
    assert response.status_code == 400
    assert '<td class="num">2</td>' in html and "instruction" in html
    assert "do it" in html
    assert not Task.objects.exists()


def test_a_check_writes_nothing_and_an_import_writes_all(db, admin_user):
    client = signed_in(admin_user)
    data = {"text": '{"external_id": "a", "instruction": "do it"}', "format": "jsonl"}
    checked = client.post("/tasks/import/", {**data, "do": "check"})
    assert "1 task can be imported" in checked.content.decode()
    assert not Task.objects.exists()
    assert client.post("/tasks/import/", {**data, "do": "import"}).status_code == 302
    assert Task.objects.get().instruction == "do it"


def test_a_retired_task_leaves_the_queue(task, admin_user):
    signed_in(admin_user).post(f"/tasks/{task.pk}/retire/")
    task.refresh_from_db()
    assert task.state == Task.State.RETIRED


def test_accepted_sessions_are_exported(submitted, admin_user, annotator):
    client = signed_in(admin_user)
    assert client.post("/export/", {"dialect": "box"}).status_code == 400
    assert signed_in(annotator).post("/export/", {"dialect": "box"}).status_code == 403


# -- pages for everybody ---------------------------------------------------------------------------


def test_the_sign_in_page_names_the_demo_s_accounts_only_in_the_demo(db, settings):
    settings.DEMO = True
    assert "make run" in Client().get("/accounts/login/").content.decode()
    settings.DEMO = False
    assert "make run" not in Client().get("/accounts/login/").content.decode()


def test_no_page_has_an_inline_script(session, submitted, annotator, admin_user):
    for user, url in [
        (annotator, "/queue/"),
        (annotator, f"/sessions/{session.pk}/"),
        (admin_user, "/"),
        (admin_user, "/tasks/"),
        (admin_user, f"/reviews/{submitted.pk}/"),
    ]:
        html = signed_in(user).get(url).content.decode()
        for tag in html.split("<script")[1:]:
            head = tag.split(">")[0]
            assert "src=" in head or "application/json" in head, url
        assert " onclick=" not in html
