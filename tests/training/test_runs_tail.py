"""A file of metrics that grows, and that a resumed trainer cuts."""

from __future__ import annotations

from pathlib import Path

from training.runs.tail import JsonLines


def said(*steps: int) -> str:
    return "".join(f'{{"step": {step}}}\n' for step in steps)


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    series = JsonLines(tmp_path / "metrics.jsonl")
    assert series.read() == []
    series.path.write_text(said(1) + '{"st')
    assert series.read() == [{"step": 1}]
    assert series.read() == []
    series.path.write_text(said(1, 2))
    assert series.read() == [{"step": 2}]


def test_a_file_that_was_cut_and_has_grown_past_the_last_look_is_read_anew(tmp_path: Path) -> None:
    series = JsonLines(tmp_path / "metrics.jsonl")
    series.path.write_text(said(8, 9, 10, 11))
    assert len(series.read()) == 4
    series.path.write_text(said(8, 9))
    assert [line["step"] for line in series.read()] == [8, 9]
    series.path.write_text(said(8, 9, 10, 11))
    assert [line["step"] for line in series.read()] == [10, 11]
    series.path.write_text(said(8, 10, 11, 12, 13))
    assert [line["step"] for line in series.read()] == [8, 10, 11, 12, 13]


def test_a_file_that_was_emptied_is_read_as_it_fills_again(tmp_path: Path) -> None:
    series = JsonLines(tmp_path / "metrics.jsonl")
    series.path.write_text(said(1, 2))
    assert len(series.read()) == 2
    series.path.write_text("")
    assert series.read() == [] and series.read() == []
    series.path.write_text(said(1))
    assert series.read() == [{"step": 1}]


def test_a_number_that_is_none_is_one_that_a_database_can_keep(tmp_path: Path) -> None:
    series = JsonLines(tmp_path / "metrics.jsonl")
    series.path.write_text('{"step": 1, "loss": 0.5, "grad_norm": NaN, "lr": Infinity}\n')
    assert series.read() == [{"step": 1, "loss": 0.5, "grad_norm": None, "lr": None}]
