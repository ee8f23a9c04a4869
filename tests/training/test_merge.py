"""Merging specialists: the sum of weights, tensor by tensor, and only of what fits together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from agent.serving.checkpoint import find, load
from training.runs.rundir import RunDir, Status
from training.trainers import job, merge, sft, weights
from training.trainers.weights import Weights

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)


def merge_main(path: Path, *more: str) -> int:
    return job.main("merge", merge.Config, merge.train, merge.show, [str(path), *more])


def specialist(folder: Path, base: Path, word: str, **config: object) -> Path:
    record = {
        "id": word, "messages": [{"role": "user", "content": f"Say {word}"}], "target": word,
        "images": [], "loss": True, "weight": 1.0,
    }  # fmt: skip
    settings: dict[str, object] = {
        "base": str(base), "steps": 3, "batch_size": 1, "learning_rate": 0.01, "warmup_steps": 0,
        "lora_rank": 4, "save_every": 0, "threads": 1, "version": word,
    }  # fmt: skip
    run = RunDir.create(folder / word, config=settings | config, lines=[json.dumps(record) + "\n"])
    assert job.main("sft", sft.Config, sft.train, sft.show, [str(run.path)]) == 0
    return run.checkpoint(3)


def source(folder: Path, weight: float) -> dict[str, Any]:
    return {"uri": str(folder), "version": folder.parents[1].name, "weight": weight}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("specialists")
    return (
        specialist(folder, tiny_llama, "apple"),
        specialist(folder, tiny_llama, "pear", lora_rank=0),
    )


def test_an_adapter_and_full_weights_are_merged_exactly(tmp_path, two):
    run = RunDir.create(
        tmp_path / "run", config={"sources": [source(two[0], 0.25), source(two[1], 0.75)]}
    )
    assert merge_main(run.path) == 0
    assert run.status().state == "succeeded" and run.steps() == [1]
    first, second = load(two[0]).model.state_dict(), load(two[1]).model.state_dict()
    merged = load(run.checkpoint(1))
    assert merged.manifest.version == "run-step-1"
    for name, tensor in merged.model.state_dict().items():
        wanted = 0.25 * first[name].double() + 0.75 * second[name].double()
        assert torch.allclose(tensor.double(), wanted, atol=1e-6), name
    said = json.loads((run.path / "metrics.jsonl").read_text())
    assert 0 < said["spread"] < 1


def test_killed_before_its_last_word_it_has_merged_all_the_same(tmp_path, two):
    run = RunDir.create(
        tmp_path / "run", config={"sources": [source(two[0], 0.5), source(two[1], 0.5)]}
    )
    assert merge_main(run.path) == 0
    said = (run.path / "metrics.jsonl").read_text()
    run.write_status(Status("running", 0, 1))
    assert merge_main(run.path) == 0
    assert run.status().state == "succeeded" and run.steps() == [1]
    assert (run.path / "metrics.jsonl").read_text() == said


def test_the_weights_of_an_adapter_are_those_that_peft_merges(two):
    lazy, whole = Weights(find(two[0])), load(two[0]).model.state_dict()
    assert len(lazy) > 10
    for name, tensor in lazy.items():
        assert torch.allclose(tensor, whole[name], atol=1e-6), name


def test_large_weights_are_written_in_shards_that_load(tmp_path, two, monkeypatch):
    monkeypatch.setattr(weights.save, "__kwdefaults__", {"shard": 20_000})
    run = RunDir.create(
        tmp_path / "run", config={"sources": [source(two[1], 1.0), source(two[1], 0.0)]}
    )
    assert merge_main(run.path) == 0
    assert len(list(run.checkpoint(1).glob("model-*-of-*.safetensors"))) > 2
    alone, merged = load(two[1]).model.state_dict(), load(run.checkpoint(1)).model.state_dict()
    assert all(torch.equal(alone[name], merged[name]) for name in alone)
    assert dict(Weights(find(run.checkpoint(1)))).keys() == Weights(find(two[1])).keys()


def test_weights_that_are_no_mixture_are_refused(tmp_path, two):
    run = RunDir.create(
        tmp_path / "run", config={"sources": [source(two[0], 0.5), source(two[1], 0.6)]}
    )
    assert merge_main(run.path) == 1
    assert "add up to 1.1" in run.status().error
    assert run.steps() == []


def test_one_source_is_nothing_to_merge(tmp_path, two):
    run = RunDir.create(tmp_path / "run", config={"sources": [source(two[0], 1.0)]})
    assert merge_main(run.path) == 1
    assert "fewer than two sources" in run.status().error


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("tandem.json", {"dialect": "point"}, "other has dialect point"),
        ("config.json", {"hidden_act": "gelu"}, "other has another hidden_act"),
        ("tokenizer.json", {"version": "2.0"}, "other has another tokenizer"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, two, file, change, message):
    other = tmp_path / "other" / "checkpoints" / "step-3"
    shutil.copytree(two[1], other)
    record = json.loads((other / file).read_text())
    (other / file).write_text(json.dumps(record | change))
    run = RunDir.create(
        tmp_path / "run", config={"sources": [source(two[0], 0.5), source(other, 0.5)]}
    )
    assert merge_main(run.path) == 1
    assert message in run.status().error


def test_the_dry_run_names_the_shares(tmp_path, two, capsys):
    run = RunDir.create(
        tmp_path / "run", config={"sources": [source(two[0], 0.5), source(two[1], 0.5)]}
    )
    assert merge_main(run.path, "--dry-run") == 0
    assert "0.500  apple (adapter)" in capsys.readouterr().out
    assert run.steps() == []
