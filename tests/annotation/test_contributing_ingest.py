"""Applications, functions and queries from files: every error by line and field, all or nothing."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from annotation.contributing import queries
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


def test_what_no_database_and_no_float_keeps_is_named(admin_user: User) -> None:
    records = (
        '{"record": "application", "application": "a\\ud800"}',
        '{"record": "application", "application": "b", "coverage": 1' + 400 * "0" + "}",
        '{"record": "application", "application": "c", "coverage_source": "x\u2028y"}',
    )
    report = import_records("\n".join(records), format="jsonl", by=admin_user)
    found = [(problem.line, problem.field) for problem in report.problems]
    assert found == [(1, "application"), (2, "coverage")]


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


def test_what_is_there_is_updated_only_after_just_those_changes_were_seen(admin_user: User) -> None:
    import_records(CSV, format="csv", by=admin_user)
    query = Query.objects.get()
    queries.publish(query)
    records = [
        {"record": "application", "application": "Mail", "coverage": 0.4, "coverage_source": "2026"},
        {"record": "application", "application": "Sheet", "coverage": 0.5},
        {"record": "application", "application": "Calendar"},
        {"record": "function", "application": "Mail", "function": "Search > By sender", "benefit": 1},
        {"record": "query", "application": "Mail", "function": "Search > By sender", "text": query.text,
         "also": "Calendar; Sheet", "wanted": 9, "level": "expert"},
    ]  # fmt: skip
    text = "\n".join(json.dumps(record) for record in records)
    left = import_records(text, format="jsonl", by=admin_user, dry_run=True)
    assert left.changes == [] and len(left.existing) == 4

    seen = import_records(text, format="jsonl", by=admin_user, update=True)
    assert seen.dry_run and Application.objects.get(name="Mail").coverage == 0.9
    assert [(one.line, one.field, one.before, one.after) for one in seen.changes] == [
        (1, "coverage", 0.9, 0.4), (1, "coverage_source", "survey, 2025", "2026"),
        (4, "benefit", 0.25, 1), (5, "also", "Sheet", "Calendar;Sheet"), (5, "wanted", 3, 9),
    ]  # fmt: skip
    assert seen.created == ["application Calendar"] and len(seen.existing) == 1

    Application.objects.filter(name="Mail").update(coverage=0.8)  # somebody else, meanwhile
    stale = import_records(text, format="jsonl", by=admin_user, update=True, agreed=seen.token)
    assert stale.dry_run and stale.changes[0].before == 0.8
    done = import_records(text, format="jsonl", by=admin_user, update=True, agreed=stale.token)
    assert done.ok and not done.dry_run
    mail = Application.objects.get(name="Mail")
    assert (mail.coverage, mail.coverage_source) == (0.4, "2026")
    query.refresh_from_db()
    assert query.wanted == 9 == query.task.needed and query.also.count() == 2
    history = LogEntry.objects.get(object_id=str(mail.pk), content_type__model="application")
    assert history.user == admin_user and "coverage: 0.8 → 0.4" in history.change_message

    # The way back is an import as well.
    back = import_records(done.undo, format="jsonl", by=admin_user, update=True)
    import_records(done.undo, format="jsonl", by=admin_user, update=True, agreed=back.token)
    mail.refresh_from_db()
    query.refresh_from_db()
    assert (mail.coverage, mail.coverage_source, query.wanted) == (0.8, "survey, 2025", 3)
    assert [one.name for one in query.also.all()] == ["Sheet"]


def test_an_update_with_one_mistake_changes_nothing(admin_user: User) -> None:
    import_records(CSV, format="csv", by=admin_user)
    query = Query.objects.get()
    queries.publish(query)
    records = [
        {"record": "application", "application": "Mail", "coverage": 0.1},
        {"record": "application", "application": "Sheet", "coverage": 7},
        {"record": "query", "application": "Mail", "function": "Search > By sender", "text": query.text,
         "recorded_as": "exploration"},
    ]  # fmt: skip
    text = "\n".join(json.dumps(record) for record in records)
    report = import_records(text, format="jsonl", by=admin_user, update=True)
    assert [(one.line, one.field) for one in report.problems] == [(2, "coverage"), (3, "")]
    assert "people were asked" in report.problems[1].message
    agreed = import_records(text, format="jsonl", by=admin_user, update=True, agreed=report.token)
    assert not agreed.ok and Application.objects.get(name="Mail").coverage == 0.9
    assert not LogEntry.objects.exists()


def test_a_row_that_is_changed_twice_comes_back_as_it_was(admin_user: User) -> None:
    import_records(CSV, format="csv", by=admin_user)
    lines = "".join(
        json.dumps({"record": "application", "application": "Mail", "coverage": value}) + "\n"
        for value in (0.1, 0.2)
    )
    seen = import_records(lines, format="jsonl", by=admin_user, update=True)
    done = import_records(lines, format="jsonl", by=admin_user, update=True, agreed=seen.token)
    assert Application.objects.get(name="Mail").coverage == 0.2
    back = import_records(done.undo, format="jsonl", by=admin_user, update=True)
    import_records(done.undo, format="jsonl", by=admin_user, update=True, agreed=back.token)
    assert Application.objects.get(name="Mail").coverage == 0.9
