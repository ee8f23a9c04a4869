"""Pages over HTTP: who may see what, and what they show."""

from __future__ import annotations

import pytest
from django.test import Client

from annotation.errors import NoTask
from annotation.models import Session, Step, Task
from tests.annotation.views.web import post, signed_in

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
    session.decision_points.update(screenshot="0" * 64)  # a picture that is in the store no more
    assert signed_in(annotator).get(f"/blobs/{'0' * 64}.png").status_code == 404


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


def test_a_thought_of_several_lines_that_nobody_touched_is_no_correction(submitted, reviewer):
    submitted.steps.update(thought="First this.\nThen that.")
    data = {"verdict": "accepted", "thought-0": "First this.\r\nThen that.", "comment-0": "a\r\nb"}
    assert signed_in(reviewer).post(f"/reviews/{submitted.pk}/", data).status_code == 302
    given = submitted.reviews.get()
    assert given.verdict == "accepted"
    assert (given.steps.get().thought, given.steps.get().comment) == ("", "a\nb")


def test_a_verdict_that_comes_second_is_told_so(submitted, reviewer, admin_user):
    url, data = f"/reviews/{submitted.pk}/", {"verdict": "accepted"}
    assert signed_in(admin_user).post(url, data).status_code == 302
    late = signed_in(reviewer).post(url, {**data, "reasons": "fine"})
    assert late.status_code == 409
    assert "does not wait for your verdict" in late.content.decode()
    assert signed_in(reviewer).get(url).status_code == 200


def test_a_session_of_many_steps_can_be_judged(submitted, reviewer):
    step = submitted.steps.get()
    Step.objects.bulk_create(
        Step(
            session=submitted, index=index, observation=step.observation, action=step.action,
            screenshot=step.screenshot, actor="human", action_id=f"more-{index}", state="executed",
        )
        for index in range(1, 400)
    )  # fmt: skip
    names = ("mark", "thought", "command", "comment")
    data = {f"{name}-{index}": "" for index in range(400) for name in names}
    answer = signed_in(reviewer).post(f"/reviews/{submitted.pk}/", {**data, "verdict": "accepted"})
    assert answer.status_code == 302
    assert submitted.reviews.get().steps.count() == 400


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
