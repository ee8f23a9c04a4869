"""Files that other trainers read as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.data import exports, reviews
from annotation.data.reviews import Mark
from annotation.models import Session


@pytest.fixture
def folder(submitted: Session, reviewer: Any, tmp_path: Path) -> Path:
    """One session of two clicks and a finish; the second click is redundant."""
    reviews.submit(submitted, reviewer=reviewer, verdict="accepted", marks=[Mark(1, "redundant")])
    call_command("export", str(tmp_path / "out"), verbosity=0)
    return tmp_path / "out"


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_a_row_per_step_with_loss_on_the_last_turn_only(folder: Path) -> None:
    found = rows(folder, "steps.jsonl")
    assert len(found) == 2  # the redundant step gives no row of its own
    for row in found:
        *context, last = row["messages"]
        assert last["role"] == "assistant"
        assert last["loss"] and not any(message["loss"] for message in context)
        assert last["content"].startswith("Thought: ")
    roles = [message["role"] for message in found[-1]["messages"]]
    assert roles == ["user", "assistant"] * 3


def test_every_picture_tag_has_a_file_beside_it(folder: Path) -> None:
    for name in ("steps.jsonl", "trajectories.jsonl", "uitars.jsonl"):
        for row in rows(folder, name):
            text = "".join(message["content"] for message in row["messages"])
            assert text.count("<image>") == len(row["images"]) > 0
            assert all((folder / path).read_bytes()[:4] == b"\x89PNG" for path in row["images"])
            assert not any(Path(path).is_absolute() for path in row["images"])


def test_a_trajectory_has_loss_on_every_good_step(folder: Path) -> None:
    (row,) = rows(folder, "trajectories.jsonl")
    losses = [m["loss"] for m in row["messages"] if m["role"] == "assistant"]
    assert losses == [True, False, True]


def test_ui_tars_rows_carry_a_loss_mask(folder: Path) -> None:
    for row in rows(folder, "uitars.jsonl"):
        masks = [message["loss_mask"] for message in row["messages"]]
        assert masks == [0] * (len(masks) - 1) + [1]


def test_trl_rows_are_prompt_and_completion(folder: Path) -> None:
    for row in rows(folder, "trl.jsonl"):
        parts = [part for turn in row["prompt"] for part in turn["content"]]
        assert [p["type"] for p in parts].count("image") == len(row["images"])
        (answer,) = row["completion"]
        assert answer["role"] == "assistant"


def test_llama_factory_finds_its_columns(folder: Path) -> None:
    info = json.loads((folder / "dataset_info.json").read_text())
    assert set(info) == {"uitars", "steps", "trajectories"}
    row = rows(folder, info["steps"]["file_name"])[0]
    assert set(info["steps"]["columns"].values()) <= set(row)
    assert info["steps"]["tags"]["role_tag"] in row["messages"][0]


def test_names_stay_at_home(folder: Path) -> None:
    for path in folder.glob("*.json*"):
        assert "annotator" not in path.read_text().replace('"annotator"', "")


def test_the_element_dialect_exports_text_only(
    submitted: Session,
    tmp_path: Path,
) -> None:
    from agent import dialects

    format = exports.Format(dialect=dialects.load("element"), observation="elements")
    done = exports.export([submitted], tmp_path, format=format)
    (first, *_) = rows(tmp_path, "steps.jsonl")
    assert done.steps == 3
    assert first["images"] == []
    assert "click(element=1)" in first["messages"][-1]["content"]


def test_a_picture_that_is_gone_costs_its_rows_only(
    submitted: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = submitted.steps.all()
    gone = "ab" * 32
    submitted.steps.filter(pk=first.pk).update(
        screenshot=gone, observation={**first.observation, "screenshot": gone}
    )
    done = exports.export([submitted], tmp_path, format=exports.Format(history_n=1))
    kept = [row["id"] for row in rows(tmp_path, "steps.jsonl")]
    assert kept == [f"session-{submitted.pk}-{index}" for index in (1, 2)]
    assert rows(tmp_path, "trajectories.jsonl") == []
    assert len(done.left_out) == 2 and all(gone in line for line in done.left_out)


def test_an_old_folder_is_not_overwritten(folder: Path) -> None:
    with pytest.raises(CommandError, match="is not empty"):
        call_command("export", str(folder))
