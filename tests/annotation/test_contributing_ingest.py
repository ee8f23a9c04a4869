"""Applications, functions and queries from files: every error by line and field, all or nothing."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User

from annotation.contributing.ingest import import_records
from annotation.errors import BadInput
from annotation.models import Application, Function, Query, Task

pytestmark = pytest.mark.django_db

CSV = """record,application,coverage,coverage_source,function,frequency,benefit,text,level,also,steps,wanted
application,Mail,0.9,"survey, 2025",,,,,,,,
application,Sheet,0.5,,,,,,,,,
function,Mail,,,Search,40,0.5,,,,,
function,Mail,,,Search > By sender,30,0.25,,,,,
query,Mail,,,Search > By sender,,,"Find what Ada sent
and sum it up",expert,Sheet,2,3
"""


def test_a_csv_brings_all_three_kinds(admin_user: User) -> None:
    report = import_records(CSV, format="csv", by=admin_user)
    assert report.problems == [] and len(report.created) == 5
    mail = Application.objects.get(name="Mail")
    assert (mail.coverage, mail.coverage_source, mail.engagement) == (0.9, "survey, 2025", 0.0)
    assert Function.objects.get(name="By sender").parent.name == "Search"
    row = Query.objects.get()
    assert (row.text, row.level, row.steps, row.wanted, row.state) == (
        "Find what Ada sent and sum it up", "expert", 2, 3, "written",
    )  # fmt: skip
    assert [one.name for one in row.also.all()] == ["Sheet"]
    assert row.by == admin_user and not Task.objects.exists()
    again = import_records(CSV, format="csv", by=admin_user)
    assert again.ok and again.created == [] and len(again.existing) == 5


def test_a_dry_run_writes_nothing(admin_user: User) -> None:
    report = import_records(CSV, format="csv", by=admin_user, dry_run=True)
    assert report.ok and len(report.created) == 5 and not Application.objects.exists()


def test_every_mistake_is_named_and_nothing_is_written(admin_user: User) -> None:
    records = [
        {"record": "application", "application": "Mail", "coverage": 2},
        {"record": "application", "application": "Sheet", "colour": "red", "engagement": "much"},
        {"record": "application", "application": "Good"},
        {"record": "function", "application": "Nowhere", "function": "Search"},
        {"record": "function", "application": "Good", "function": "Search > By sender"},
        {"record": "function", "application": "Good", "function": "Search >"},
        {"record": "function", "application": "Good", "function": "Sort", "benefit": True},
        {"record": "function", "application": "Good", "function": "Sum", "transfer": float("nan")},
        {"record": "query", "application": "Good", "function": "Sort", "text": "Sort it"},
        {"record": "song"},
        {"application": "Good"},
        {"record": "function", "application": "Good", "function": "Find"},
        {"record": "query", "application": "Good", "function": "Find", "text": "a", "steps": 4},
        {"record": "query", "application": "Good", "function": "Find", "text": "b", "level": "god"},
        {"record": "query", "application": "Good", "function": "Find", "text": "c", "also": "Moon"},
        {"record": "query", "application": "Good", "function": "Find", "text": "d\x00"},
        {"record": "query", "application": "Good", "function": "Find", "wanted": 1.5},
        {"record": "query", "application": "Good", "function": "Find", "text": "e", "also": "Good"},
        {"record": "query", "application": "Good", "function": "Find", "text": "f", "wanted": 10**9},
        {"record": "query", "application": "Good", "function": "Find", "text": "g", "recorded_as": "x"},
    ]  # fmt: skip
    text = "\n".join(json.dumps(record) for record in records)
    report = import_records(text, format="jsonl", by=admin_user)
    found = [(problem.line, problem.field) for problem in report.problems]
    assert found == [
        (1, "coverage"), (2, "colour"), (2, "engagement"), (4, "application"), (5, "function"),
        (6, "function"), (7, "benefit"), (8, "transfer"), (9, "function"), (10, "record"),
        (11, "record"), (13, "steps"), (14, "level"), (15, "also"), (16, "text"), (17, "wanted"),
        (17, "text"), (18, ""), (19, "wanted"), (20, "kind"),
    ]  # fmt: skip
    assert not Application.objects.exists()


def test_other_files(admin_user: User) -> None:
    assert "nothing" in str(import_records("", format="jsonl", by=admin_user).problems[0])
    listed = import_records(
        '[{"record": "application", "application": "Mail"}, 7]', format="json", by=admin_user
    )
    assert [problem.line for problem in listed.problems] == [1] and not listed.ok
    odd = import_records("record,colour\nx,y\n", format="csv", by=admin_user)
    assert {problem.field for problem in odd.problems} == {"application", "colour"}
    with pytest.raises(BadInput, match="format"):
        import_records("", format="xml", by=admin_user)
