"""The pages of datasets: what can be frozen from the form, imported, looked at, frozen again."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from tests.training.sessions import make_session
from tests.training.test_sampling import play, rollout
from training.data import datasets
from training.data.selection import Filters
from training.models import Dataset

pytestmark = pytest.mark.django_db

LINE = b'{"messages": [{"role": "user", "content": "2 + 2?"}], "target": "4 is it"}\n'


@pytest.fixture
def staff(client, admin_user):
    client.force_login(admin_user)
    return client


def test_episodes_are_frozen_from_the_form_with_the_limits_that_the_preview_counts(staff):
    one = rollout()
    short, long = play(one, steps=2), play(one, repeat=1)
    rollout("exam", "evaluate")
    page = staff.get(reverse("training:new-dataset")).content.decode()
    assert '<option value="collected">' in page
    assert "exam" not in page
    asked = {"source": "episodes", "rollouts": ["collected"], "per_seed": "1"}
    seen = staff.get(reverse("training:preview"), asked).content.decode()
    assert "beyond the 1 shortest of its task and seed" in seen
    answer = staff.post(reverse("training:new-dataset"), asked | {"name": "high", "pool": "sft"})
    dataset = Dataset.objects.get()
    assert answer["Location"] == reverse("training:dataset", args=[dataset.pk])
    assert dataset.filters == asked | {"per_seed": 1}
    shown = staff.get(answer["Location"]).content.decode()
    assert f"episode {short.pk}</a>" in shown
    assert f"episode {long.pk}</a>" in shown.split("Left out")[1]
    refused = staff.post(
        reverse("training:new-dataset"),
        asked | {"name": "leak", "pool": "sft", "rollouts": ["exam"]},
    )
    assert b"exam is not one of the available choices" in refused.content
    assert Dataset.objects.count() == 1


def test_a_page_of_the_ct_pool_marks_all_text(staff):
    make_session(reward=0.0)
    low = datasets.freeze(name="low", pool="ct", filters=Filters(), by=None)
    page = staff.get(reverse("training:dataset", args=[low.pk])).content.decode()
    assert '<mark class="loss">Task: ' in page
    rows = b"".join(
        staff.get(reverse("training:download", args=[low.pk, "rows"])).streaming_content
    )
    assert {json.loads(row)["loss"] for row in rows.splitlines()} == {"all"}


def test_general_data_is_imported_shown_and_comes_back(staff):
    address = reverse("training:import-general")
    broken = SimpleUploadedFile("chat.jsonl", LINE + b"{}\n")
    refused = staff.post(address, {"name": "chat", "file": broken})
    assert b"chat.jsonl, line 2: messages must be" in refused.content
    assert b'value="chat"' in refused.content
    answer = staff.post(address, {"name": "chat", "file": SimpleUploadedFile("chat.jsonl", LINE)})
    dataset = Dataset.objects.get(name="chat", pool="general")
    page = staff.get(answer["Location"]).content.decode()
    assert '<mark class="loss">4 is it</mark>' in page
    download = reverse("training:download", args=[dataset.pk, "conversations"])
    assert b"4 is it" in b"".join(staff.get(download).streaming_content)
    again = staff.post(address, {"name": "chat", "file": SimpleUploadedFile("chat.jsonl", LINE)})
    assert b"there is a dataset called" in again.content
    trajectories = reverse("training:download", args=[dataset.pk, "trajectories"])
    assert staff.get(trajectories).status_code == 404


def test_the_command_imports_and_names_what_is_wrong(tmp_path, capsys):
    file = tmp_path / "chat.jsonl"
    file.write_bytes(LINE)
    call_command("import_general", str(file), "--name", "chat")
    assert "chat: 1 conversations" in capsys.readouterr().out
    file.write_bytes(b"nonsense\n")
    with pytest.raises(CommandError, match=r"chat\.jsonl, line 1: no JSON"):
        call_command("import_general", str(file), "--name", "other")
    with pytest.raises(CommandError, match="can't be read"):
        call_command("import_general", str(tmp_path / "no"), "--name", "other")


def test_what_was_erased_is_said_and_a_fresh_one_is_one_click_away(staff, admin_user):
    make_session()
    dataset = datasets.freeze(name="may-3", pool="sft", filters=Filters(task="mini"), by=None)
    Dataset.objects.filter(pk=dataset.pk).update(erased_at=timezone.now())
    page = staff.get(reverse("training:dataset", args=[dataset.pk])).content.decode()
    assert "nothing trains on it any more" in page
    assert "Launch" not in page
    gone = staff.get(reverse("training:download", args=[dataset.pk, "rows"]))
    assert gone["Location"] == reverse("training:dataset", args=[dataset.pk])
    assert staff.get(reverse("training:refreeze", args=[dataset.pk])).status_code == 405
    staff.post(reverse("training:refreeze", args=[dataset.pk]))
    fresh = Dataset.objects.get(name="may-2")
    assert (fresh.filters, fresh.created_by, fresh.erased_at) == (
        {"task": "mini"},
        admin_user,
        None,
    )


def test_only_staff_reach_the_new_pages(client, annotator):
    make_session()
    dataset = datasets.freeze(name="d", pool="sft", filters=Filters(), by=None)
    addresses = [
        reverse("training:import-general"),
        reverse("training:refreeze", args=[dataset.pk]),
    ]
    for address in addresses:
        assert client.post(address)["Location"].startswith("/accounts/login/")
    client.force_login(annotator)
    assert {client.post(address).status_code for address in addresses} == {403}
