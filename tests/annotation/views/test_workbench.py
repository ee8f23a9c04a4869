"""What the workbench asks for over HTTP: its panel, its verbs, and how a refusal looks."""

from __future__ import annotations

import pytest
from django.test import Client

from annotation.errors import MissingThoughts, StaleFence, StaleScreen
from annotation.models import DecisionPoint, Session, Step
from tests.annotation.views.web import CLICK, post, signed_in


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
        ({"proposal_rank": 1, "active_ms": 2**31}, "active_ms must be a whole number"),
        ({"proposal_rank": 1, "thought": "a\0b"}, "U+0000"),
        ({"command": 'type("\\ud800")'}, "writes something that is no character"),
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


@pytest.mark.parametrize("draft", [{"command": "\0"}, {"command": "\ud800"}])
def test_a_draft_that_can_not_be_kept_is_named(session, annotator, draft):
    url = f"/sessions/{session.pk}/draft/"
    response = post(signed_in(annotator), url, fence=1, draft=draft)
    assert response.status_code == 400
    assert "can't be kept" in response.json()["message"]


def test_a_panel_for_nobody_is_no_form_to_sign_in(session):
    response = Client().get(f"/sessions/{session.pk}/panel/")
    assert (response.status_code, response.content) == (401, b"signed out")
