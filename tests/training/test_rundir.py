from __future__ import annotations

import json

import pytest

from training.runs.rundir import RunDir, RunDirError, Status, read_status, write_atomic


@pytest.fixture
def run(tmp_path):
    return RunDir.create(tmp_path / "run", config={"base": "x"}, lines=['{"id": "a"}\n'])


def test_a_new_run_is_queued_and_whole(run):
    assert run.status() == Status("queued", time=run.status().time)
    assert run.config() == {"base": "x"}
    assert list(run.rows()) == [{"id": "a"}]
    assert run.steps() == []


def test_making_it_again_is_fine_but_not_with_another_configuration(run):
    again = RunDir.create(run.path, config={"base": "x"}, lines=['{"id": "b"}\n'])
    assert [row["id"] for row in again.rows()] == ["b"]
    with pytest.raises(RunDirError, match="another configuration"):
        RunDir.create(run.path, config={"base": "y"}, lines=[])


def test_the_status_is_replaced_as_a_whole(run):
    run.write_status(Status("running", step=3, total_steps=9, pid=7))
    status = run.status()
    assert (status.state, status.step, status.total_steps, status.pid) == ("running", 3, 9, 7)
    assert status.time > 0
    assert [p.name for p in run.path.iterdir() if p.name.startswith(".")] == []


def test_nothing_said_yet_and_nonsense_differ(tmp_path):
    assert read_status(tmp_path) is None
    (tmp_path / "status.json").write_text('{"state": "dancing"}')
    with pytest.raises(RunDirError, match="dancing"):
        read_status(tmp_path)
    (tmp_path / "status.json").write_text("{")
    with pytest.raises(RunDirError, match=r"status\.json"):
        read_status(tmp_path)


@pytest.mark.parametrize("line", ["{", "[]", '{"id": 3}', "{}"])
def test_a_row_that_cannot_be_read_is_named_by_its_line(run, line):
    write_atomic(run.data, '{"id": "a"}\n' + line + "\n")
    with pytest.raises(RunDirError, match=r"data\.jsonl:2"):
        list(run.rows())


def test_missing_files_are_named(tmp_path):
    with pytest.raises(RunDirError, match=r"config\.yaml is missing"):
        RunDir(tmp_path).config()
    with pytest.raises(RunDirError, match=r"data\.jsonl is missing"):
        list(RunDir(tmp_path).rows())


def test_metrics_beyond_the_step_of_a_resume_are_cut_and_so_is_half_a_line(run):
    for step in (1, 2, 3):
        run.append_metrics({"step": step, "loss": 1 / step})
    path = run.path / "metrics.jsonl"
    with path.open("a") as file:
        file.write('{"step": 4, "lo')
    run.cut_metrics(2)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2]


def test_only_whole_checkpoints_count(run):
    for name in ("step-10", "step-2", "step-5", ".step-7.unfinished", "step-x"):
        (run.checkpoints / name).mkdir()
    for name in ("step-10", "step-2", ".step-7.unfinished", "step-x"):
        (run.checkpoints / name / "tandem.json").write_text("{}")
    assert run.steps() == [2, 10]
    assert run.checkpoint(10) == run.checkpoints / "step-10"
