"""The pages of reward models: who may, what is seen before a model may gate data."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agent.models import Deployment
from tests.training.judged import make_episodes
from training import jobs
from training.models import Calibration, RewardModel
from training.rewards import calibrations, reward_models

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client, admin_user, monkeypatch):
    monkeypatch.setattr(jobs.calibrate, "apply_async", lambda *args, **options: None)
    client.force_login(admin_user)
    return client


@pytest.fixture
def deployment():
    return Deployment.objects.create(
        name="judge", kind="openai", base_url="http://judge", reads="screenshot", version="1"
    )


@pytest.fixture
def model(deployment):
    return reward_models.create(name="orm", kind="generative", deployment=deployment)


@pytest.fixture
def calibrated(model, monkeypatch):
    """A calibration with two wrong answers, an abstention and one that could not be read."""
    monkeypatch.setattr(jobs.calibrate, "apply_async", lambda *args, **options: None)
    make_episodes(30, 30)
    row = calibrations.start(model, size=60)
    said = [dict(answer, reward=answer["truth"], reason="r", evidence=[[1, "e"]], raw="raw",
                 version="j", error="") for answer in row.answers]  # fmt: skip
    lost = [answer for answer in said if not answer["truth"]]
    lost[0] |= {"reward": 1, "reason": "<b>It looked done.</b>"}
    lost[1] |= {"reward": None, "error": "no evidence is given"}
    lost[2] |= {"reward": None}
    row.answers, row.state = said, Calibration.State.DONE
    row.save()
    return row


def addresses(model, calibration):
    yield from (reverse(f"training:{name}") for name in ("reward-models", "new-reward-model"))
    yield reverse("training:reward-model", args=[model.pk])
    for name in ("calibration", "calibration-panel"):
        yield reverse(f"training:{name}", args=[calibration.pk])


def test_only_staff_see_reward_models(client, stranger, annotator, model, calibrated):
    posts = [reverse(f"training:{n}", args=[model.pk]) for n in ("calibrate", "admit", "withdraw")]
    posts += [
        reverse(f"training:{n}-calibration", args=[calibrated.pk]) for n in ("cancel", "resume")
    ]
    for address in addresses(model, calibrated):
        client.logout()
        assert "/accounts/login/" in client.get(address)["Location"]
    for person in (stranger, annotator):
        client.force_login(person)
        assert all(client.get(a).status_code == 403 for a in addresses(model, calibrated))
        assert all(client.post(address).status_code == 403 for address in posts)


def test_every_page_is_there(staff, model, calibrated):
    for address in addresses(model, calibrated):
        assert staff.get(address).status_code in (200, 286)
    for name in ("rewardmodel", "calibration"):
        assert staff.get(f"/admin/training/{name}/").status_code == 200
        assert staff.get(f"/admin/training/{name}/add/").status_code == 403
    index = staff.get("/admin/").content.decode()
    assert reverse("training:new-evaluation") in index
    assert reverse("training:reward-models") in index


def test_one_is_made_from_the_form(staff, deployment, admin_user):
    address = reverse("training:new-reward-model")
    values = {"name": "judge-1", "kind": "generative", "deployment": deployment.pk}
    answer = staff.post(address, values)
    row = RewardModel.objects.get()
    assert answer["Location"] == reverse("training:reward-model", args=[row.pk])
    assert (row.created_by, row.gates) == (admin_user, False)
    wrong = staff.post(address, {"name": "pair", "kind": "ensemble", "members": [row.pk]})
    assert b"choose at least two" in wrong.content
    taken = staff.post(address, values)
    assert b"there is a reward model called" in taken.content


def test_a_calibration_is_begun_from_the_page(staff, model, admin_user):
    address = reverse("training:calibrate", args=[model.pk])
    few = staff.post(address, {"size": "4", "seed": "0"})
    assert b"2 successes are wanted and there are 0" in few.content
    make_episodes(2, 2)
    answer = staff.post(address, {"size": "4", "seed": "0", "families": ["toys"]})
    row = Calibration.objects.get()
    assert answer["Location"] == reverse("training:calibration", args=[row.pk])
    assert (row.total, row.by, row.state) == (4, admin_user, "queued")
    page = staff.get(answer["Location"]).content.decode()
    assert "every 3s" in page
    assert "0 of 4 episodes" in page
    staff.post(reverse("training:cancel-calibration", args=[row.pk]))
    assert staff.get(reverse("training:calibration-panel", args=[row.pk])).status_code == 286
    staff.post(reverse("training:resume-calibration", args=[row.pk]))
    assert Calibration.objects.get().state == "queued"


def test_the_matrix_and_the_wrong_answers_are_seen(staff, calibrated):
    address = reverse("training:calibration", args=[calibrated.pk])
    page = staff.get(address)
    text = page.content.decode()
    assert page.context["found"].counts["true_positive"] == 30
    assert '<td class="wrong">1</td>' in text
    assert "1 abstained, 1 unreadable" in text
    assert page.context["show"] == "false_positive"
    assert "&lt;b&gt;It looked done." in text
    assert "verifier: failure" in text
    unreadable = staff.get(address, {"show": "unreadable"}).content.decode()
    assert "no evidence is given" in unreadable
    right = staff.get(address, {"show": "true_positive", "page": "2"})
    assert len(right.context["answers"]) == 5
    assert "show=true_positive&amp;page=1" in right.content.decode()


def test_the_gate_opens_only_where_the_figures_allow(staff, model, calibrated, deployment):
    page = reverse("training:reward-model", args=[model.pk])
    refused = staff.post(reverse("training:admit", args=[model.pk]), {"precision": "0.95"})
    assert b"the lower end must reach 0.95" in refused.content
    assert not RewardModel.objects.get().gates
    staff.post(reverse("training:admit", args=[model.pk]), {"precision": "0.8"})
    assert RewardModel.objects.get().gated_by == calibrated
    assert b"gates data</span>" in staff.get(page).content
    Deployment.objects.filter(pk=deployment.pk).update(version="2")
    assert b"out of date" in staff.get(page).content
    staff.post(reverse("training:withdraw", args=[model.pk]))
    assert not RewardModel.objects.get().gates
