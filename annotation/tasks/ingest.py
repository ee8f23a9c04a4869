"""Tasks from a file: JSON list, JSON lines or CSV; every error by line and field, all or nothing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from annotation.errors import BadInput
from annotation.models import Task
from sandbox import setups
from sandbox.models import Pool

FORMATS = ("json", "jsonl", "csv")
TEXTS = {"external_id": 200, "instruction": 10_000, "domain": 64, "pool": 64, "guidelines": 10_000}
REQUIRED = ("external_id", "instruction")
NUMBERS = {"max_steps": (1, 1000), "priority": (-1000, 1000), "needed": (1, 100)}
STRUCTURES: dict[str, type] = {"setup": list, "verifier": dict}
FIELDS = (*TEXTS, *NUMBERS, *STRUCTURES)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, where: `line` counts from 1; `field` is empty where it is the whole record."""

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: " + (f"{self.field}: " if self.field else "") + self.message


@dataclass(slots=True)
class Report:
    """What an import did, or would do where it was a dry run or has problems."""

    created: list[str] = field(default_factory=list)  # external ids
    existing: list[str] = field(default_factory=list)  # left as they are
    problems: list[Problem] = field(default_factory=list)
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        return not self.problems


def import_tasks(text: str, *, format: str, dry_run: bool = False) -> Report:
    """Create every task of `text`, or none if one has a problem; known external ids are left alone.

    `format` is "json" (a list), "jsonl" or "csv" (with a header; `setup` and `verifier` as JSON).
    """
    if format not in FORMATS:
        raise BadInput(f"format: must be one of {', '.join(FORMATS)}")
    report = Report(dry_run=dry_run)
    rows: dict[str, Task] = {}
    first_line: dict[str, int] = {}
    for line, record in _records(text, format, report.problems):
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


def _records(
    text: str, format: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each record with its line; what can't be read goes to `problems`."""
    if format == "csv":
        yield from _csv_records(text, problems)
    elif format == "jsonl":
        for line, source in enumerate(text.splitlines(), start=1):
            if source.strip():
                yield from _json_object(line, source, problems)
    else:
        yield from _json_list(text, problems)


def _json_object(
    line: int, source: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        record = json.loads(source)
    except ValueError as error:
        problems.append(Problem(line, "", f"not JSON: {error}"))
        return
    if isinstance(record, dict):
        yield line, record
    else:
        problems.append(Problem(line, "", f"a task is an object, not {_kind(record)}"))


def _json_list(text: str, problems: list[Problem]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read one element after the other, so that each knows the line on which it begins."""
    decoder = json.JSONDecoder()
    at = _skip_space(text, 0)
    if not text[at:].startswith("["):
        problems.append(Problem(1, "", "a JSON import is a list: [ {...}, ... ]"))
        return
    at = _skip_space(text, at + 1)
    while not text[at:].startswith("]"):
        line = text.count("\n", 0, at) + 1
        try:
            record, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            problems.append(Problem(error.lineno, "", f"not JSON: {error.msg}"))
            return
        if isinstance(record, dict):
            yield line, record
        else:
            problems.append(Problem(line, "", f"a task is an object, not {_kind(record)}"))
        at = _skip_space(text, at)
        if text[at:].startswith(","):
            at = _skip_space(text, at + 1)
        elif not text[at:].startswith("]"):
            problems.append(Problem(text.count("\n", 0, at) + 1, "", "a comma or ] is missing"))
            return


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _csv_records(text: str, problems: list[Problem]) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text))
    header = [name.strip() for name in next(reader, [])]
    for name in REQUIRED:
        if name not in header:
            problems.append(Problem(1, name, "this column is missing in the header"))
    for name in header:
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            problems.append(Problem(1, name, f"there is no such column; known: {known}"))
    if problems:
        return
    line = reader.line_num + 1
    for values in reader:
        here, line = line, reader.line_num + 1  # a quoted cell may span lines
        if not any(values):
            continue
        if len(values) != len(header):
            message = f"{len(values)} cells, the header has {len(header)}"
            problems.append(Problem(here, "", message))
            continue
        cells = {name: value for name, value in zip(header, values, strict=True) if value.strip()}
        record = {name: _cell(here, name, value, problems) for name, value in cells.items()}
        yield here, record


def _cell(line: int, name: str, value: str, problems: list[Problem]) -> object:
    """Return a cell as the value of its field; one that can't be read stays text and is refused."""
    try:
        if name in NUMBERS:
            return int(value)
        if name in STRUCTURES:
            return json.loads(value)
    except ValueError:
        return value
    return value


def _task(line: int, record: dict[str, Any], problems: list[Problem]) -> Task | None:
    """Return an unsaved task, or None after naming everything that is wrong with the record."""
    found: list[Problem] = []

    def wrong(name: str, message: str) -> None:
        found.append(Problem(line, name, message))

    for name in record:
        if name not in FIELDS:
            wrong(name, f"there is no such field; known: {', '.join(FIELDS)}")
    for name, limit in TEXTS.items():
        value = record.get(name, "")
        if not isinstance(value, str):
            wrong(name, f"must be text, not {_kind(value)}")
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
    for name, kind in STRUCTURES.items():
        value = record.get(name, kind())
        if not isinstance(value, kind):
            wrong(name, f"must be {_kind(kind())}, not {_kind(value)}")
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


def _kind(value: object) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
    }
    return names.get(type(value), "null" if value is None else type(value).__name__)
