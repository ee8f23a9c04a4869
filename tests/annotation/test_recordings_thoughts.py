"""Thoughts that a model made up or said in other words: marked, apart, and left out where one wants."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from agent.models import Deployment
from agent.policy import PolicyRefused, PolicyUnreachable
from agent.rewards.chat import Said
from annotation.contributing import graph
from annotation.data.reviews import trajectory_of
from annotation.models import Recording, Rewording
from annotation.recordings import rewording, rights, synthesis, thoughts
from tests.annotation.recorded import Recorded, Sender, accept, arrived, click, lines, signed_in
from tests.annotation.test_recordings_upload import token_of
from training import erasure
from training.data import datasets
from training.data.rows import PromptFormat, Row, rows
from training.data.selection import Filters
from training.data.texts import texts

pytestmark = pytest.mark.django_db
ELEMENTS = PromptFormat(dialect="element", observation="elements")


class Model:
    """Answers as told and keeps what it was asked; an answer that is an error is raised."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers, self.asked = list(answers), []

    def say(self, messages: Sequence[dict[str, Any]]) -> Said:
        self.asked.append(messages[0]["content"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return Said(answer, "model-7")


@pytest.fixture
def sender(stranger: Any, settings: Any, tmp_path: Any) -> Sender:
    settings.RECORDING_SPOOL = tmp_path / "spool"
    return Sender(token_of(stranger))


@pytest.fixture
def writer(db: None, settings: Any) -> Deployment:
    """The deployment that the project and the settings name."""
    row = Deployment.objects.create(
        name="writer", kind="openai", base_url="http://127.0.0.1:9", model="m"
    )
    project = graph.project()
    project.synthesizer = row
    project.save()
    settings.RECORDING_REFINER = ""
    return row


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str | Exception) -> Model:
    model = Model(*answers)
    for module in (synthesis, rewording):
        monkeypatch.setattr(module.deployments, "chat", lambda *_, **__: model)
    return model


def half_silent() -> Recorded:
    """Three steps; only about the first one is spoken."""
    recorded = Recorded()
    recorded.steps.append(
        {**recorded.steps[1], "index": 2, "began": 60.0, "ended": 60.1, "action": click(9, 9)}
    )
    recorded.files["steps.jsonl"] = lines(recorded.steps)
    recorded.files["words.jsonl"] = b"".join(
        line + b"\n" for line in recorded.files["words.jsonl"].splitlines()[:3]
    )
    return recorded


def test_nothing_is_synthesized_unless_an_admin_chose_so(
    sender: Sender, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = answering(monkeypatch, "I make this up.")
    row = arrived(sender, queue, half_silent())
    assert [step.provenance for step in row.steps.all()] == ["spoken", "", ""]
    assert model.asked == []


def test_a_silent_step_gets_a_thought_that_can_not_know_the_outcome(
    sender: Sender, queue: Any, writer: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = answering(monkeypatch, "I enter the budget.", "I confirm it.")
    recorded = half_silent()
    row = arrived(sender, queue, recorded)
    told = [(step.thought, step.provenance, step.model_version) for step in row.steps.all()]
    assert told == [
        ("I click save", "spoken", ""),
        ("I enter the budget.", "synthesized", "model-7"),
        ("I confirm it.", "synthesized", "model-7"),
    ]
    first, second = model.asked
    # The one picture is that from before the action; no later thought is told.
    assert [part.get("sha256") for part in first] == [recorded.steps[1]["frame"], None]
    words = first[1]["text"]
    assert "Save the report." in words and 'type("budget")' in words and "- I click save" in words
    assert "confirm" not in words and "I enter the budget." in second[1]["text"]
    assert row.utterances.count() == 1


def test_an_endpoint_that_gives_no_thought_leaves_none_and_the_page_says_so(
    sender: Sender, queue: Any, writer: Deployment, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = answering(monkeypatch, PolicyUnreachable("http://127.0.0.1:9 does not answer"))
    row = arrived(sender, queue, half_silent())
    assert (row.status, len(model.asked)) == ("in_review", 1)  # not asked again for the rest
    for step in row.steps.filter(index__gt=0):
        assert (step.thought, step.provenance) == ("", "")
        assert "does not answer" in step.unthought
    page = signed_in(reviewer).get(f"/recordings/{row.name}/review/").content.decode()
    assert "does not answer" in page


@pytest.mark.parametrize(
    ("answer", "why"),
    [("", "nothing"), ("Because. " * 100, "characters"), (PolicyRefused("no pictures"), "no pict")],
)
def test_an_answer_that_is_no_thought_is_not_taken_and_others_are_asked(
    sender: Sender, queue: Any, writer: Deployment, monkeypatch: pytest.MonkeyPatch,
    answer: str | Exception, why: str,
) -> None:  # fmt: skip
    answering(monkeypatch, answer, "I confirm it.")
    row = arrived(sender, queue, half_silent())
    second, third = row.steps.filter(index__gt=0)
    assert second.thought == "" and why in second.unthought
    assert (third.thought, third.provenance, third.unthought) == (
        "I confirm it.", "synthesized", "",
    )  # fmt: skip


def test_a_deployment_that_can_not_be_asked_is_said_on_every_step(
    sender: Sender, queue: Any, writer: Deployment
) -> None:
    writer.kind = "scripted"
    writer.save()
    row = arrived(sender, queue, half_silent())
    assert row.status == "in_review"
    assert all("scripted" in step.unthought for step in row.steps.filter(index__gt=0))


def test_reviewers_edit_or_strike_and_a_freeze_may_leave_the_rest_out(
    sender: Sender, queue: Any, writer: Deployment, reviewer: Any, admin_user: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    answering(monkeypatch, "I enter the budget.", "I confirm it.")
    recorded = half_silent()
    recorded.steps.append({**recorded.steps[2], "index": 3, "began": 70.0, "ended": 70.1})
    recorded.files["steps.jsonl"] = lines(recorded.steps)
    row = arrived(sender, queue, recorded)
    form = {"verdict": "accepted", "thought-2": "I press OK.", "thought-3": ""}
    signed_in(reviewer).post(f"/recordings/{row.name}/review/", form)
    assert [step.provenance for step in row.steps.all()] == ["spoken", "synthesized", "typed", ""]
    row = accept(row, admin_user)
    whole = trajectory_of(row.session)
    assert whole.metadata["thoughts"] == "spoken synthesized typed none"

    def frozen(name: str, **values: Any) -> Any:
        made = datasets.freeze(name=name, pool="ct", filters=Filters(**values), by=None)
        (found,) = datasets.trajectories(made)
        return found

    assert frozen("all") == whole
    left = frozen("heard", thoughts="without-synthesized")
    assert left.metadata["thoughts"] == "spoken none typed none"
    assert [step.thought for step in left.steps] == ["I click save", "", "I press OK.", ""]
    assert [step.action for step in left.steps] == [step.action for step in whole.steps]


def test_an_export_says_whose_each_thought_is_and_may_leave_out_made_up_ones(
    sender: Sender, queue: Any, writer: Deployment, reviewer: Any, admin_user: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    answering(monkeypatch, "I enter the budget.", "I confirm it.")
    row = accept(arrived(sender, queue, half_silent()), reviewer, admin_user)
    told = {}
    for choice in ("all", "without-synthesized"):
        call_command("export", tmp_path / choice, "--thoughts", choice)
        told[choice] = (tmp_path / choice / "trajectories.jsonl").read_text()
    whole, left = json.loads(told["all"]), json.loads(told["without-synthesized"])
    assert whole["thoughts"] == "spoken synthesized synthesized"
    assert left["thoughts"] == "spoken none none" and "I click save" in str(left)
    assert "I confirm it." in str(whole) and "I confirm it." not in told["without-synthesized"]
    assert row.steps.filter(provenance="synthesized").count() == 2


@pytest.fixture
def said_anew(
    sender: Sender, queue: Any, reviewer: Any, admin_user: Any, writer: Deployment, settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Recording:  # fmt: skip
    """An accepted recording: one thought spoken, one synthesized, one not; two of them reworded."""
    answering(monkeypatch, "I enter the budget.", PolicyRefused("no"))
    row = accept(arrived(sender, queue, half_silent()), reviewer, admin_user)
    settings.RECORDING_REFINER = "writer"
    answering(monkeypatch, "Saving is what I do now.", "The budget goes in here.")
    assert rewording.reword(row.pk) == 2
    return row


def test_rewordings_stand_beside_their_originals_where_a_freeze_wants_them(
    said_anew: Recording,
) -> None:
    plain = datasets.freeze(name="plain", pool="ct", filters=Filters(), by=None)
    both = datasets.freeze(name="both", pool="ct", filters=Filters(rewordings=True), by=None)
    (original,) = datasets.trajectories(plain)
    same, other = datasets.trajectories(both)
    assert same == original  # never replaced
    assert (other.metadata["augmented"], other.metadata["origin"]) == ("reworded", original.id)
    assert other.id != original.id and thoughts.origin_of(other) == thoughts.origin_of(original)
    assert [step.thought for step in other.steps] == [
        "Saving is what I do now.", "The budget goes in here.", "",
    ]  # fmt: skip
    assert other.metadata["thoughts"] == "reworded reworded none"
    assert [step.trainable for step in other.steps] == [True, True, False]
    assert [step.action for step in other.steps] == [step.action for step in same.steps]
    assert (plain.trajectories, plain.augmented) == (1, 0)
    assert (both.trajectories, both.steps, both.augmented, both.augmented_steps) == (1, 3, 1, 2)
    assert [(one.session, one.augmented) for one in both.entries.all()] == [
        (said_anew.session, False), (said_anew.session, True),
    ]  # fmt: skip
    # In both shapes that trainers read they are rows as any other.
    for shape in (rows, texts):
        made = [one for one in shape(datasets.trajectories(both), ELEMENTS) if isinstance(one, Row)]
        assert {one.id.split("/")[0] for one in made} == {original.id, other.id}


def test_what_was_made_up_is_not_reworded_either_where_it_is_left_out(said_anew: Recording) -> None:
    wanted = Filters(rewordings=True, thoughts="without-synthesized")
    made = datasets.freeze(name="heard", pool="ct", filters=wanted, by=None)
    original, other = datasets.trajectories(made)
    assert [step.thought for step in other.steps] == ["Saving is what I do now.", "", ""]
    assert made.augmented_steps == 1 and original.metadata["thoughts"] == "spoken none none"
    Rewording.objects.all().delete()
    assert datasets.freeze(name="none", pool="ct", filters=wanted, by=None).augmented == 0


def test_withdrawing_reaches_what_was_said_in_other_words_too(
    said_anew: Recording, stranger: Any
) -> None:
    body = b"".join(signed_in(stranger).get(f"/recordings/{said_anew.name}/download/"))
    told = json.loads(zipfile.ZipFile(io.BytesIO(body)).read("tandem.json"))
    assert [one["text"] for one in told["rewordings"]] == [
        "Saving is what I do now.", "The budget goes in here.",
    ]  # fmt: skip
    both = datasets.freeze(name="both", pool="ct", filters=Filters(rewordings=True), by=None)
    rights.withdraw(said_anew)
    assert erasure.erase_withdrawn() == 1 and not Rewording.objects.exists()
    both.refresh_from_db()
    assert both.erased_at is not None
    assert [one.session for one in both.entries.all()] == [None, None]


def test_the_page_counts_them_apart_and_the_form_offers_them(
    said_anew: Recording, admin_user: Any
) -> None:
    admin = Client()
    admin.force_login(admin_user)
    form = {"name": "both", "pool": "ct", "rewordings": "on", "thoughts": "without-synthesized"}
    page = admin.post("/training/datasets/new/", form, follow=True).content.decode()
    assert "1 trajectory, 3 steps" in page and "1 more trajectory in other words, 1 thought" in page
    made = datasets.Dataset.objects.get(name="both")
    assert made.filters == {"rewordings": True, "thoughts": "without-synthesized"}
    assert Filters.from_json(json.loads(json.dumps(made.filters))).rewordings
