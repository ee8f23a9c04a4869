"""Tasks from a file: JSON list, JSON lines or CSV; every error by line and field, all or nothing."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from annotation import storable
from annotation.models import Task
from annotation.tasks.records import Columns, Problem, Report, kind, read
from sandbox import setups
from sandbox.models import Pool

TEXTS = {"external_id": 200, "instruction": 10_000, "domain": 64, "pool": 64, "guidelines": 10_000}
REQUIRED = ("external_id", "instruction")
NUMBERS = {"max_steps": (1, 1000), "priority": (-1000, 1000), "needed": (1, 100)}
STRUCTURES: dict[str, type] = {"setup": list, "verifier": dict}
FIELDS = (*TEXTS, *NUMBERS, *STRUCTURES)
COLUMNS = Columns(
    noun="a task", known=FIELDS, required=REQUIRED,
    read={**dict.fromkeys(NUMBERS, int), **dict.fromkeys(STRUCTURES, json.loads)},
)  # fmt: skip


def import_tasks(text: str, *, format: str, dry_run: bool = False) -> Report:
    """Create every task of `text`, or none if one has a problem; known external ids are left alone.

    `format` is "json" (a list), "jsonl" or "csv" (with a header; `setup` and `verifier` as JSON).
    """
    report = Report(dry_run=dry_run)
    rows: dict[str, Task] = {}
    first_line: dict[str, int] = {}
    for line, record in read(text, format=format, columns=COLUMNS, problems=report.problems):
        task = _task(line, record, report.problems)
        if task is None:
            continue
        if task.external_id in first_line:
            before = first_line[task.external_id]
            message = f"{task.external_id!r} is on line {before} already"
            report.problems.append(Problem(line, "external_id", message))
            continue
        first_line[task.external_id] = line
        rows[task.external_id] = task
    if not rows and not report.problems:
        report.problems.append(Problem(1, "", "there is no task in this file"))
    report.problems.sort(key=lambda problem: problem.line)
    with transaction.atomic():
        known = set(Task.objects.filter(external_id__in=rows).values_list("external_id", flat=True))
        report.existing = [name for name in rows if name in known]
        report.created = [name for name in rows if name not in known]
        if report.ok and not dry_run:
            # Somebody may import the same file at this moment: theirs or ours, each task once.
            Task.objects.bulk_create(
                [rows[name] for name in report.created],
                batch_size=500,
                ignore_conflicts=True,
            )
    return report


def _task(line: int, record: dict[str, Any], problems: list[Problem]) -> Task | None:
    """Return an unsaved task, or None after naming everything that is wrong with the record."""
    found: list[Problem] = []

    def wrong(name: str, message: str) -> None:
        found.append(Problem(line, name, message))

    if why := storable.wrong(record):
        wrong("", why)
    for name in record:
        if name not in FIELDS:
            wrong(name, f"there is no such field; known: {', '.join(FIELDS)}")
    for name, limit in TEXTS.items():
        value = record.get(name, "")
        if not isinstance(value, str):
            wrong(name, f"must be text, not {kind(value)}")
        elif name in REQUIRED and not value.strip():
            wrong(name, "is missing")
        elif len(value) > limit:
            wrong(name, f"is longer than {limit} characters")
    for name, (low, high) in NUMBERS.items():
        value = record.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int):
            wrong(name, f"must be a whole number, not {value!r}")
        elif not low <= value <= high:
            wrong(name, f"must lie between {low} and {high}")
    for name, shape in STRUCTURES.items():
        value = record.get(name, shape())
        if not isinstance(value, shape):
            wrong(name, f"must be {kind(shape())}, not {kind(value)}")
        else:
            check = setups.check_setup if name == "setup" else setups.check_verifier
            for message in check(value):
                wrong(name, message)
    if not found and (pool := record.get("pool", "").strip()):
        known = list(Pool.objects.order_by("name").values_list("name", flat=True))
        if pool not in known:
            wrong("pool", f"there is no pool {pool!r}; there are: {', '.join(known) or 'none'}")
    if found:
        problems.extend(found)
        return None
    return Task(**{name: _clean(value) for name, value in record.items()})


def _clean(value: object) -> object:
    return value.strip() if isinstance(value, str) else value
