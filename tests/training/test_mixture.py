"""What a run learns from: rows of steps, of whole texts, of what is mixed in, and what is left out."""

from __future__ import annotations

import json

import pytest

from tests.training.sessions import PICTURE, make_session
from training.data import datasets, mixture
from training.data.rows import LeftOut, PromptFormat
from training.data.selection import Filters
from training.data.texts import texts
from training.errors import Erased
from training.models import Checkpoint, Dataset, MixedDataset, Run
from trajectory import Click, Drag, Finish, Scroll

pytestmark = pytest.mark.django_db

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}
SEES = PromptFormat(dialect="box", observation="screenshot", coordinates="frame", history_n=2)
READS = PromptFormat(dialect="element", observation="elements")


def freeze(name: str, pool: str = "sft", **filters) -> Dataset:
    return datasets.freeze(name=name, pool=pool, filters=Filters(**filters), by=None)


def general(name: str = "chat") -> Dataset:
    record = {"messages": [{"role": "user", "content": "2 + 2?"}], "target": "4"}
    lines = [json.dumps(record).encode()]
    return datasets.import_general(name=name, file="chat.jsonl", lines=lines, by=None)


def run(kind: str, dataset: Dataset, *mixed: Dataset, manifest=MANIFEST) -> Run:
    base = Checkpoint.objects.create(version="base", uri="file:///base", manifest=manifest)
    made = Run.objects.create(name="r", kind=kind, dataset=dataset, base=base)
    for one in mixed:
        MixedDataset.objects.create(run=made, dataset=one, weight=0.5)
    return made


def test_a_run_reads_its_dataset_and_what_is_mixed_in_each_row_with_its_source():
    make_session(actions=(Click(120, 110), Drag(((900, 600), (950, 650))), Finish()))
    found = mixture.lines(run("sft", freeze("main"), general()))
    rows = [json.loads(line) for line in found]
    assert [(row["source"], row["loss"]) for row in rows] == [("main", True)] * 2 + [("chat", True)]
    assert rows[-1]["target"] == "4"
    assert found.report["rows"] == 3
    assert found.report["sources"] == {"main": 2, "chat": 1}
    assert found.report["left_out_total"] == 1
    assert found.report["left_out"][0]["id"].endswith("/1")
    assert list(found.pictures) == []


def test_pre_training_learns_all_text_also_of_wrong_steps():
    make_session(reward=0.0, marks={0: {"mark": "wrong"}})
    found = [json.loads(line) for line in mixture.lines(run("ct", freeze("low", "ct"), general()))]
    assert [(row["source"], row["loss"]) for row in found] == [("low", "all")] * 2 + [
        ("chat", "all")
    ]
    assert "Screen:" in found[0]["messages"][-1]["content"]
    assert found[0]["target"].startswith("Thought: I do step 0.")


def test_the_ct_pool_is_learnt_as_text_wherever_it_is_mixed_in():
    make_session()
    make_session(reward=0.0)
    found = [json.loads(line) for line in mixture.lines(run("sft", freeze("s"), freeze("c", "ct")))]
    assert {(row["source"], row["loss"]) for row in found} == {("s", True), ("c", "all")}


def test_a_reader_of_screenshots_gets_each_thought_once_with_pictures_as_context():
    make_session(reward=0.0, actions=(Click(1, 2), Scroll(5, 5, dy=5), Finish()))
    first, second = texts(datasets.trajectories(freeze("low", "ct")), SEES)
    assert (first.images, second.images) == ([PICTURE] * 2, [PICTURE])
    whole = json.dumps(first.messages) + first.target + json.dumps(second.messages) + second.target
    assert [whole.count(f"I do step {n}.") for n in range(3)] == [1, 1, 1]
    assert first.loss == "all"


def test_what_a_dialect_can_not_write_is_told_in_words_and_what_was_not_kept_is_named():
    session = make_session(reward=0.0, actions=(Drag(((900, 600), (950, 650))), Finish()))
    first, _ = texts(datasets.trajectories(freeze("low", "ct")), READS)
    assert "Action: drag" in first.target
    step = session.steps.first()
    step.observation["screenshot"] = "0" * 64
    step.save()
    first, *_ = texts(datasets.trajectories(freeze("blind", "ct")), SEES)
    assert isinstance(first, LeftOut)
    assert "screenshots" in first.reason


def test_a_dataset_without_any_row_is_named_with_the_first_reason():
    make_session(actions=(Drag(((900, 600), (950, 650))),))
    with pytest.raises(mixture.NothingToLearn, match=r"no step of main .* base reads it: session-"):
        list(mixture.lines(run("sft", freeze("main"))))


def test_nothing_trains_on_what_was_erased():
    make_session()
    dataset = freeze("main")
    Dataset.objects.update(erased_at=dataset.frozen_at)
    with pytest.raises(Erased, match="main"):
        list(mixture.lines(run("sft", dataset)))


def test_a_manifest_that_does_not_say_how_it_is_asked_is_named():
    make_session()
    with pytest.raises(KeyError, match="dialect"):
        mixture.lines(run("sft", freeze("main"), manifest={}))
