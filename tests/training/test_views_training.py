"""The training pages: who may, what they show, what they keep of what was typed."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agent.models import Deployment
from annotation.models import Session
from tests.training.sessions import make_session
from training.data import datasets
from training.data.selection import Filters
from training.models import Checkpoint, Dataset, Promotion, Run
from training.presets import presets_of

pytestmark = pytest.mark.django_db

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}


@pytest.fixture
def staff(client, admin_user):
    client.force_login(admin_user)
    return client


@pytest.fixture
def dataset() -> Dataset:
    make_session()
    return datasets.freeze(name="clicks", pool="sft", filters=Filters(), by=None)


@pytest.fixture
def base() -> Checkpoint:
    return Checkpoint.objects.create(version="box", uri="/box", manifest=MANIFEST)


@pytest.fixture
def run(dataset, base) -> Run:
    return Run.objects.create(
        name="sft-clicks-1", dataset=dataset, base=base, config=presets_of("sft")["standard"], state=Run.State.RUNNING,
        step=3, total_steps=8, metrics={"step": 3, "loss": 0.25, "eta_s": 60}, log="line\n",
    )  # fmt: skip


@pytest.fixture
def checkpoint(run) -> Checkpoint:
    return Checkpoint.objects.create(
        version="sft-clicks-1-step-2", uri="s3://b/c", run=run, parent=run.base, step=2,
        manifest=MANIFEST,
    )  # fmt: skip


@pytest.fixture
def deployment() -> Deployment:
    return Deployment.objects.create(
        name="partner", reads="elements", dialect="element", version="box", is_partner=True
    )


def pages(dataset, run, checkpoint, deployment):
    plain = ("overview", "datasets", "new-dataset", "preview", "runs", "new-run", "compare",
             "checkpoints", "promotions")  # fmt: skip
    yield from (reverse(f"training:{name}") for name in plain)
    yield reverse("training:dataset", args=[dataset.pk])
    yield from (
        reverse("training:download", args=[dataset.pk, p]) for p in ("trajectories", "rows")
    )
    yield from (
        reverse(f"training:{name}", args=[run.pk])
        for name in ("run", "panel", "metrics", "run-rows", "events")
    )
    yield from (reverse(f"training:{n}", args=[checkpoint.pk]) for n in ("checkpoint", "promote"))
    yield reverse("training:roll-back", args=[deployment.pk])


def test_staff_see_every_page_and_nobody_else_any(
    client, admin_user, annotator, reviewer, stranger, dataset, run, checkpoint, deployment
):
    addresses = list(pages(dataset, run, checkpoint, deployment))
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/login/?next=")
    for person in (annotator, reviewer, stranger):
        client.force_login(person)
        assert {client.get(address).status_code for address in addresses} == {403}
    client.force_login(admin_user)
    for address in addresses:
        assert client.get(address).status_code == 200, address


def test_what_only_posts_may_change_refuses_a_get(staff, run):
    for name in ("cancel", "resume"):
        assert staff.get(reverse(f"training:{name}", args=[run.pk])).status_code == 405


def test_empty_pages_say_what_to_do(staff):
    assert b"No dataset yet" in staff.get(reverse("training:datasets")).content
    assert b"No run yet" in staff.get(reverse("training:runs")).content
    assert b"register_box" in staff.get(reverse("training:new-run"), {"kind": "sft"}).content
    assert b"Nothing promoted yet" in staff.get(reverse("training:promotions")).content


# -- datasets ------------------------------------------------------------------------------------


def test_the_preview_follows_the_filters(staff):
    make_session()
    make_session(domain="desktop", task="desk/1", status="submitted", verdict="")
    address = reverse("training:preview")
    assert b"waits for a reviewer" in staff.get(address).content
    assert b"waits for a reviewer" not in staff.get(address, {"domain": "web"}).content
    wrong = staff.get(address, {"since": "2026-05-02", "until": "2026-05-01"})
    assert b"can&#x27;t be read" in wrong.content or b"can't be read" in wrong.content


def test_a_dataset_is_frozen_from_the_form(staff, admin_user):
    make_session()
    values = {"name": "may", "pool": "sft", "domain": "web"}
    answer = staff.post(reverse("training:new-dataset"), values)
    dataset = Dataset.objects.get()
    assert answer["Location"] == reverse("training:dataset", args=[dataset.pk])
    assert (dataset.created_by, dataset.filters) == (admin_user, {"domain": "web"})
    page = staff.get(answer["Location"]).content.decode()
    assert dataset.sha256 in page
    assert "A-17" in page
    marked = page.split('<mark class="loss">')
    assert any("click(element=1)" in part.split("</mark>")[0] for part in marked[1:])


def test_what_is_wrong_with_a_freeze_is_said_and_what_was_typed_is_kept(staff, dataset):
    address = reverse("training:new-dataset")
    taken = staff.post(address, {"name": "clicks", "pool": "sft", "author": "A-17"})
    assert b"there is a dataset called" in taken.content
    assert b'value="A-17"' in taken.content
    empty = staff.post(address, {"name": "none", "pool": "ct"})
    assert b"no session would go to the CT pool" in empty.content
    assert Dataset.objects.count() == 1


def test_the_downloads_are_json_lines(staff, dataset):
    for part, key in (("trajectories", b'"steps"'), ("rows", b'"target"')):
        answer = staff.get(reverse("training:download", args=[dataset.pk, part]))
        assert key in b"".join(answer.streaming_content)
        assert dataset.sha256[:12] in answer["Content-Disposition"]
    assert staff.get(reverse("training:download", args=[dataset.pk, "x"])).status_code == 404


# -- checkpoints ---------------------------------------------------------------------------------


def test_promoting_asks_first_and_can_be_rolled_back(staff, checkpoint, deployment):
    address = reverse("training:promote", args=[checkpoint.pk])
    asked = staff.get(address).content.decode()
    assert "partner" in asked
    assert not Promotion.objects.exists()
    answer = staff.post(address, {"deployment": deployment.pk})
    assert answer["Location"] == reverse("training:promotions")
    deployment.refresh_from_db()
    assert deployment.version == checkpoint.version
    assert b"Roll back to box" in staff.get(answer["Location"]).content
    staff.post(reverse("training:roll-back", args=[deployment.pk]))
    deployment.refresh_from_db()
    assert deployment.version == "box"


def test_a_refused_promotion_says_why(staff, checkpoint, deployment):
    Deployment.objects.update(dialect="box")
    answer = staff.post(
        reverse("training:promote", args=[checkpoint.pk]), {"deployment": deployment.pk}
    )
    assert "dialect" in answer.context["form"].errors["deployment"][0]


def test_a_critic_is_promoted_nowhere(staff, checkpoint, deployment):
    Checkpoint.objects.filter(pk=checkpoint.pk).update(role=Checkpoint.Role.CRITIC)
    address = reverse("training:promote", args=[checkpoint.pk])
    answer = staff.post(address, {"deployment": deployment.pk})
    assert "it can't act" in answer.context["form"].errors["deployment"][0]
    assert address not in staff.get("/admin/training/checkpoint/").content.decode()


def test_a_checkpoint_shows_its_sessions_and_pseudonyms_not_names(staff, checkpoint, annotator):
    annotator.username = "carol"
    annotator.save()
    Session.objects.update(author=annotator)
    page = staff.get(reverse("training:checkpoint", args=[checkpoint.pk])).content.decode()
    assert "A-17" in page
    assert "carol" not in page


# -- the admin -----------------------------------------------------------------------------------


def test_the_admin_leads_to_the_training_pages(staff, run, checkpoint):
    index = staff.get("/admin/").content.decode()
    for name in ("new-dataset", "new-run", "checkpoints", "promotions"):
        assert f'href="{reverse(f"training:{name}")}"' in index
    for model in (
        "dataset",
        "run",
        "checkpoint",
        "promotion",
        "datasetentry",
        "metric",
        "mixeddataset",
        "mergesource",
    ):
        assert staff.get(f"/admin/training/{model}/").status_code == 200
        assert staff.get(f"/admin/training/{model}/add/").status_code == 403
    launch = {"action": "launch_run", "_selected_action": [run.dataset_id]}
    answer = staff.post("/admin/training/dataset/", launch)
    assert answer["Location"] == f"{reverse('training:new-run')}?dataset={run.dataset_id}"
    promote = {"action": "promote", "_selected_action": [checkpoint.pk]}
    answer = staff.post("/admin/training/checkpoint/", promote)
    assert answer["Location"] == reverse("training:promote", args=[checkpoint.pk])
