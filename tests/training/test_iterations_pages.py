"""The flywheel's pages and its command."""

# Fixtures come by import, and are named as parameters.
# ruff: noqa: F811

from __future__ import annotations

import io

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.urls import reverse

from tests.training.iteration_parts import (  # noqa: F401
    CONFIG,
    begin,
    box,
    now,
    partner,
    place,
    play,
    toys,
    train,
    turn,
    whole,
)
from training.iterations import driver, iterations
from training.management.commands import iterate
from training.models import Iteration, Rollout

pytestmark = pytest.mark.django_db

LIST = "/training/iterations/"
NEW = "/training/iterations/new/"


@pytest.fixture
def staff(client, admin_user):
    client.force_login(admin_user)
    return client


def page(row: Iteration, name: str = "iteration", *more: str) -> str:
    return reverse(f"training:{name}", args=[row.pk, *more])


def typed(partner, **changes):
    return CONFIG | {"deployment": partner.pk, "count": 1, "per_seed": 2, "temperature": 1,
                     "sessions": "yes", "sft_every": 1, "start": "base", "repeats": 1,
                     "value_preset": "quick", "ppo_preset": "quick", "level": 0.05} | changes  # fmt: skip


def test_only_staff_see_and_turn_the_flywheel(client, annotator, begin):
    row = begin()
    for address in (
        LIST,
        NEW,
        page(row),
        page(row, "iteration-panel"),
        page(row, "iteration-config"),
    ):
        client.logout()
        assert "/accounts/login/" in client.get(address)["Location"]
        client.force_login(annotator)
        assert client.get(address).status_code == 403
    assert client.post(page(row, "iteration-act", "cancel")).status_code == 403
    assert now(row).state == "running"


def test_the_form_starts_one_with_what_was_typed(staff, partner):
    text = staff.get(NEW).content.decode()
    assert "8 tasks × 4 seeds × 4 samples = 128 episodes" in text
    answer = staff.post(NEW, typed(partner, count=3, seeds=5))
    row = Iteration.objects.get()
    assert answer["Location"] == page(row)
    assert (row.remaining, row.config["seeds"], row.created_by.username) == (2, 5, "admin")
    text = staff.get(f"{NEW}?clone={row.pk}").content.decode()
    assert 'value="5"' in text and "toys/n2 toys/n20" in text


def test_wrong_values_are_named_and_what_was_typed_stays(staff, partner):
    text = staff.post(
        NEW, typed(partner, tasks="toys/none", level="much", changes="sft.speed: 1", name="not ok")
    ).content.decode()
    assert "Enter a valid" in text and not Iteration.objects.exists()
    text = staff.post(NEW, typed(partner, tasks="toys/none", level="much")).content.decode()
    for said in ("2 fields need another look", "has no task", "is not a number", 'value="much"'):
        assert said in text.replace("&#x27;", "'"), said
    assert not Iteration.objects.exists()


def test_a_server_that_others_use_is_refused(staff, partner, box):
    other = type(partner).objects.create(
        name="other", kind="local", reads="elements", dialect="element", base_url="http://a:1"
    )
    type(partner).objects.create(name="twin", kind="openai", base_url="http://a:1")
    text = staff.post(NEW, typed(partner, server=other.pk)).content.decode()
    assert "another deployment answers at http://a:1 too" in text


def test_the_pages_tell_a_whole_chain(staff, begin):
    row = whole(begin(count=2))
    second = turn(row.following)
    text = staff.get(LIST).content.decode()
    for said in (
        "iteration-1",
        "iteration-2",
        "promoted",
        "40.0 %",
        "100.0 %",
        "50.0 %",
        "t = 1 ↑",
    ):
        assert said in text, said
    text = staff.get(page(row)).content.decode()
    for said in (
        "Better with confidence", "+60.0 points", "0.000", "D_SFT 2 trajectories",
        f"/training/rollouts/{row.rollout_id}/", f"/training/runs/{row.sft_run_id}/",
        f"/training/evaluations/{row.evaluation_id}/", f"/training/datasets/{row.ct_dataset_id}/",
        "Followed by", "CT is due once in 2 iterations",
    ):  # fmt: skip
        assert said in text, said
    assert staff.get(page(row, "iteration-panel")).status_code == 286
    live = staff.get(page(second, "iteration-panel"))
    assert live.status_code == 200 and 'class="running"' in live.content.decode()
    config = staff.get(page(row, "iteration-config"))
    assert yaml.safe_load(config.content)["seeds"] == 2


def test_the_admin_lists_them(staff, begin):
    row = begin()
    assert f'href="{page(row)}"' in staff.get("/admin/training/iteration/").content.decode()


def test_one_button_each(staff, begin):
    row = turn(begin())
    for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert f"/{verb}/" in staff.get(page(row)).content.decode()
        staff.post(page(row, "iteration-act", verb))
        assert now(row).state == state
    answer = staff.post(page(row, "iteration-act", "repeat"), {"count": "2"})
    following = Iteration.objects.get(previous=row)
    assert answer["Location"] == page(following) and following.remaining == 1
    staff.post(page(row, "iteration-act", "repeat"), {"count": "many"})
    assert Iteration.objects.count() == 2
    assert staff.post(page(row, "iteration-act", "sing")).status_code == 404


def test_a_failed_one_shows_why_and_a_retry(staff, begin):
    row = turn(begin())
    Rollout.objects.filter(pk=row.rollout_id).update(state="failed", error="no policy there")
    row = turn(row)
    text = staff.get(page(row)).content.decode()
    assert "no policy there" in text and "/retry/" in text and 'class="failed"' in text
    staff.post(page(row, "iteration-act", "retry"))
    assert now(row).state == "running"


# -- the command ---------------------------------------------------------------------------------


def run(*args: str) -> str:
    said = io.StringIO()
    call_command("iterate", *args, stdout=said)
    return said.getvalue()


def test_the_command_starts_and_follows_to_the_end(partner, tmp_path, monkeypatch):
    file = tmp_path / "flywheel.yaml"
    file.write_text(yaml.safe_dump(CONFIG | {"tasks": ["toys/n2", "toys/n20"]}))

    def work(_: float) -> None:
        """Stand for the workers, while the command waits."""
        row = Iteration.objects.order_by("-pk").first()
        if row.phase == "collect":
            play(row.rollout)
        elif row.phase in ("baseline", "evaluate"):
            at = row.baseline if row.phase == "baseline" else row.evaluation
            play(at.rollout, solved=3 if row.phase == "baseline" else 9)
        elif row.phase in ("ct", "sft"):
            run = getattr(row, f"{row.phase}_run")
            if run and not run.ended:
                train(run)
        else:
            driver.go(row.pk)

    monkeypatch.setattr(iterate.time, "sleep", work)
    said = run("--config", str(file), "--count", "2", "--follow")
    assert "iteration-1 begins with box" in said
    assert "[ 2/11] Collect: done, 4 episodes, 2 solved" in said
    assert "iteration-1: Better with confidence" in said
    assert "iteration-2 begins with iteration-1-sft-step-8" in said
    assert Iteration.objects.filter(state="done").count() == 2


def test_the_command_names_what_is_wrong(partner, tmp_path, begin):
    file = tmp_path / "flywheel.yaml"
    file.write_text("seeds: none\ncolour: red\n")
    with pytest.raises(CommandError, match="colour: there is no such field"):
        run("--config", str(file))
    file.write_text("- a list")
    with pytest.raises(CommandError, match="holds no names"):
        run("--config", str(file))
    with pytest.raises(CommandError, match="can't be read"):
        run("--config", str(tmp_path / "nowhere.yaml"))
    with pytest.raises(CommandError, match="no deployment 'x'"):
        run("--deployment", "x")
    with pytest.raises(CommandError, match="which iteration"):
        run("--pause")


def test_the_command_pauses_and_goes_on(begin):
    row = turn(begin())
    assert "iteration-1 is paused" in run("--name", "iteration-1", "--pause")
    assert "is running" in run("--name", "iteration-1", "--resume")
    iterations.cancel(row)
    with pytest.raises(CommandError, match="cancelled: by hand"):
        run("--name", "iteration-1", "--follow")
