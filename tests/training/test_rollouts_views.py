"""The pages of rollouts: who may, what they show, what they do, what they keep of what was typed."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agent.models import Deployment
from tests.training.rollout_toys import PaperPages, play_all, toys, worker  # noqa: F401
from training.models import Episode, Rollout
from training.rollouts import episodes, rollouts
from training.rollouts.config import RolloutConfig

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.django_db]


@pytest.fixture
def staff(client, admin_user):
    client.force_login(admin_user)
    return client


@pytest.fixture
def deployment(db) -> Deployment:
    return Deployment.objects.create(
        name="paper", kind="scripted", reads="elements", dialect="element"
    )


@pytest.fixture
def rollout(deployment) -> Rollout:
    return rollouts.create(
        name="first", deployment=deployment, tasks=[("toys", "n2")], seeds=range(3)
    )


def typed(deployment, **changes):
    plain = {k: "on" if v is True else str(v) for k, v in RolloutConfig().as_dict().items()}
    return {
        "name": "", "deployment": deployment.pk, "tasks": "toys/n1?", "seeds": "0:2", "repeats": "1",
        **plain, **changes,
    }  # fmt: skip


def test_staff_see_every_page_and_nobody_else_any(
    client, admin_user, annotator, reviewer, stranger, rollout
):
    play_all(worker())
    row = rollout.episodes.first()
    sha = "0" * 64
    addresses = [
        reverse("training:rollouts"), reverse("training:new-rollout"),
        *(reverse(f"training:{name}", args=[rollout.pk])
          for name in ("rollout", "rollout-series", "episodes")),
        reverse("training:episode", args=[row.pk]),
    ]  # fmt: skip
    shut = [
        reverse("training:rollout-panel", args=[rollout.pk]),
        reverse("training:picture", args=[sha]),
    ]
    for address in addresses + shut:
        assert client.get(address).status_code == 302
    for person in (annotator, reviewer, stranger):
        client.force_login(person)
        for address in addresses + shut:
            assert client.get(address).status_code == 403
    client.force_login(admin_user)
    for address in addresses:
        assert client.get(address).status_code == 200, address
    assert client.get(shut[1]).status_code == 404


def test_a_rollout_is_started_from_the_form(staff, deployment):
    answer = staff.post(reverse("training:new-rollout"), typed(deployment, staleness="2"))
    row = Rollout.objects.get()
    assert answer.status_code == 302 and row.name == "collect-paper-1"
    assert row.total == 20 and row.config["staleness"] == 2 and row.created_by
    clone = staff.get(f"{reverse('training:new-rollout')}?clone={row.pk}").content.decode()
    assert "toys/n13" in clone


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": "chess"}, "no task family &#x27;chess&#x27;"),
        ({"tasks": "toys/x*"}, "toys has no task &#x27;x*&#x27; among its 30"),
        ({"seeds": "a:b"}, "&#x27;a:b&#x27; is neither a number nor a range"),
        ({"attempts": "many"}, "&#x27;many&#x27; is not a whole number"),
        ({"name": "taken"}, "there is a rollout called &#x27;taken&#x27;"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    staff, deployment, changes, said
):
    rollouts.create(name="taken", deployment=deployment, tasks=[("toys", "n1")], seeds=[1])
    answer = staff.post(reverse("training:new-rollout"), typed(deployment, **changes))
    page = answer.content.decode()
    assert answer.status_code == 200 and said in page and Rollout.objects.count() == 1
    assert next(iter(changes.values())) in page


def test_the_panel_shows_what_happened_and_stops_polling_at_the_end(staff, rollout):
    panel = reverse("training:rollout-panel", args=[rollout.pk])
    first = staff.get(panel)
    assert first.status_code == 200 and "No worker has been heard of" in first.content.decode()
    play_all(worker(PaperPages(lambda n: 0 if n == 0 else None)))
    last = staff.get(panel)
    page = last.content.decode()
    assert last.status_code == 286
    for said in ("3 of 3 episodes", "desktop lost", "1.000", "0.8 to 1", "v1"):
        assert said in page
    points = staff.get(reverse("training:rollout-series", args=[rollout.pk])).json()
    assert points["ended"] and sum(p["per_hour"] is not None for p in points["points"]) >= 1


def test_the_buttons_pause_resume_drain_and_cancel(staff, rollout):
    def press(verb):
        address = reverse("training:rollout-act", args=[rollout.pk, verb])
        assert staff.get(address).status_code == 405
        assert staff.post(address).status_code == 302
        rollout.refresh_from_db()
        return rollout.state

    assert press("pause") == "paused"
    assert press("resume") == "running"
    (row,) = episodes.claim(worker="w", n=1)
    assert press("drain") == "draining"
    assert press("cancel") == "cancelled"
    assert press("pause") == "cancelled"  # refused, and said so
    row.refresh_from_db()
    assert row.state == Episode.State.CANCELLED
    unknown = reverse("training:rollout-act", args=[rollout.pk, "explode"])
    assert staff.post(unknown).status_code == 404


def test_an_episode_is_shown_step_by_step_with_its_failures(staff, rollout):
    play_all(worker(PaperPages(lambda n: 1 if n == 0 else None), environments=1))
    row = rollout.episodes.get(attempts=1)
    page = staff.get(reverse("training:episode", args=[row.pk])).content.decode()
    for said in ("Click 2 times.", "I click.", "killed by signal 9", "reward 1", "2 sampled", "v1"):
        assert said in page
    picture = page.split('src="/training/pictures/')[1].split(".png")[0]
    assert staff.get(reverse("training:picture", args=[picture])).content.startswith(b"\x89PNG")
    # A trajectory is a blob too, and no picture.
    address = reverse("training:picture", args=[row.trajectory])
    assert staff.get(address).status_code == 404
    waiting = Episode.objects.create(rollout=rollout, family="toys", task="n1", seed=9)
    assert "It has not begun." in staff.get(f"/training/episodes/{waiting.pk}/").content.decode()


def test_episodes_are_narrowed_by_state_family_and_reward(staff, rollout):
    play_all(worker())
    address = reverse("training:episodes", args=[rollout.pk])
    assert staff.get(address, {"state": "done", "reward": "full"}).content.count(b"seed ") == 3
    assert b"No episode matches" in staff.get(address, {"reward": "less"}).content
    assert b"No episode matches" in staff.get(address, {"family": "games"}).content
