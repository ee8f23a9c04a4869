"""Importing tasks: every problem by line and field, and all or nothing."""

from __future__ import annotations

import json

import pytest

from annotation.errors import BadInput
from annotation.models import Task
from annotation.tasks import demo
from annotation.tasks.ingest import import_tasks

pytestmark = pytest.mark.django_db


def problems(text: str, format: str) -> list[str]:
    report = import_tasks(text, format=format)
    assert not Task.objects.exists()
    return [str(problem) for problem in report.problems]


def test_the_three_formats_give_the_same_tasks() -> None:
    record = {
        "external_id": "a", "instruction": "Say, \"hi\"", "priority": 3,
        "setup": [{"kind": "miniwob", "page": "click-test", "seed": 1}],
        "verifier": {"kind": "miniwob"},
    }  # fmt: skip
    texts = {
        "json": json.dumps([record], indent=2),
        "jsonl": json.dumps(record) + "\n\n",
        "csv": (
            "external_id,instruction,priority,setup,verifier\n"
            'a,"Say, ""hi""",3,"[{""kind"":""miniwob"",""page"":""click-test"",""seed"":1}]",'
            '"{""kind"":""miniwob""}"\n'
        ),
    }
    for format, text in texts.items():
        report = import_tasks(text, format=format)
        assert (report.problems, report.created) == ([], ["a"]), format
        row = Task.objects.get()
        assert {name: getattr(row, name) for name in record} == record
        row.delete()


def test_every_problem_is_named_and_nothing_is_created() -> None:
    lines = [
        '{"external_id": "a", "instruction": "fine"}',
        "{not json",
        '{"external_id": "b", "instruction": " ", "max_steps": "ten", "colour": 1}',
        '["a", "list"]',
        '{"external_id": "a", "instruction": "again"}',
        '{"external_id": "c", "instruction": "x", "setup": [{"kind": "fly"}], "verifier": []}',
    ]
    found = problems("\n".join(lines), "jsonl")
    assert [p.split(":")[0] for p in found] == ["line 2"] + ["line 3"] * 3 + [
        "line 4", "line 5", "line 6", "line 6",
    ]  # fmt: skip
    text = "\n".join(found)
    assert "line 3: instruction: is missing" in text
    assert "line 3: max_steps: must be a whole number, not 'ten'" in text
    assert "line 3: colour: there is no such field" in text
    assert "line 4: a task is an object, not a list" in text
    assert "line 5: external_id: 'a' is on line 1 already" in text
    assert "line 6: setup: step 1: kind 'fly' is unknown" in text
    assert "line 6: verifier: must be an object, not a list" in text


def test_a_json_list_knows_its_lines() -> None:
    text = '[\n  {"external_id": "a",\n   "instruction": "x"},\n  {"external_id": "b"}\n]'
    assert problems(text, "json") == ["line 4: instruction: is missing"]
    assert problems('{"external_id": "a"}', "json")[0].startswith("line 1: a JSON import is a list")
    assert "line 2" in problems('[\n {"a": }]', "json")[0]


def test_csv_names_columns_and_the_line_after_a_quoted_line_break() -> None:
    assert problems("external_id\na\n", "csv") == [
        "line 1: instruction: this column is missing in the header"
    ]
    text = 'external_id,instruction,needed\na,"two\nlines",1\nb,x,many\nc,x\n'
    assert problems(text, "csv") == [
        "line 4: needed: must be a whole number, not 'many'",
        "line 5: 2 cells, the header has 3",
    ]


def test_a_quote_that_is_not_closed_is_named() -> None:
    text = 'external_id,instruction\na,"open\n' + "b,do it\n" * 20_000
    report = import_tasks(text, format="csv")
    assert not report.ok and "not CSV: field larger" in str(report.problems[0])


def test_text_that_can_not_be_kept_is_named() -> None:
    line = json.dumps({"external_id": "a", "instruction": "do\0it"})
    (problem,) = import_tasks(line, format="jsonl").problems
    assert "U+0000" in str(problem)


def test_known_tasks_stay_as_they_are() -> None:
    import_tasks('{"external_id": "a", "instruction": "first"}', format="jsonl")
    text = '{"external_id": "a", "instruction": "second"}\n{"external_id": "b", "instruction": "x"}'
    report = import_tasks(text, format="jsonl")
    assert (report.created, report.existing) == (["b"], ["a"])
    assert Task.objects.get(external_id="a").instruction == "first"


def test_a_dry_run_reports_and_creates_nothing() -> None:
    report = import_tasks('[{"external_id": "a", "instruction": "x"}]', format="json", dry_run=True)
    assert (report.created, report.dry_run, Task.objects.count()) == (["a"], True, 0)


def test_an_empty_file_and_an_unknown_format_are_named() -> None:
    assert problems("", "jsonl") == ["line 1: there is no task in this file"]
    with pytest.raises(BadInput, match="json, jsonl, csv"):
        import_tasks("", format="xml")


def test_the_demo_tasks_can_be_imported() -> None:
    names = ("external_id", "instruction", "setup", "verifier", "domain", "max_steps")
    rows = [{name: getattr(task, name) for name in names} for task in demo.tasks()]
    report = import_tasks(json.dumps(rows), format="json")
    assert report.problems == []
    assert len(report.created) == 24
