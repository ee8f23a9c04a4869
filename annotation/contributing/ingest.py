"""Applications, functions and queries from a file; every error by line and field, all or nothing.

Three kinds of record in one file, in any order as long as a thing stands before what belongs to it. A
function is named by its path: `Search > Filter by date`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import models, transaction

from annotation import storable
from annotation.contributing import graph, queries, updating
from annotation.contributing.updating import Change
from annotation.errors import Refused
from annotation.models import Application, Function, Query
from annotation.tasks.records import Columns, Problem, Report, kind, read

NUMBERS = ("coverage", "engagement", "penetration", "frequency", "benefit", "transfer")
WHOLE = (*Query.RUBRIC, "wanted")
LARGEST = sys.float_info.max  # a whole number may have any length
SOURCES = tuple(f"{name}_source" for name in NUMBERS[:3])
FIELDS: dict[str, tuple[str, ...]] = {
    "application": ("application", *NUMBERS[:3], *SOURCES),
    "function": ("application", "function", *NUMBERS[3:]),
    "query": ("application", "function", "text", "level", "also", "recorded_as", *WHOLE),
}
NEEDED = {
    "application": ("application",),
    "function": ("application", "function"),
    "query": ("application", "function", "text"),
}
KNOWN = ("record", *dict.fromkeys(name for fields in FIELDS.values() for name in fields))
COLUMNS = Columns(
    noun="a record", known=KNOWN, required=("record", "application"),
    read={**dict.fromkeys(NUMBERS, float), **dict.fromkeys(WHOLE, int)},
)  # fmt: skip


class _DryRun(Exception):
    """Nothing is to be written."""


@dataclass(slots=True)
class _Wrong(Exception):
    field: str
    message: str


@dataclass(slots=True)
class Imported(Report):
    """A report with what was changed, or would be, of what was there; `dry_run`: nothing was written."""

    changes: list[Change] = field(default_factory=list)

    @property
    def token(self) -> str:
        """Return what names the changes, "" where there are none."""
        return updating.token(self.changes) if self.changes else ""

    @property
    def undo(self) -> str:
        """Return JSON lines whose import puts the changed values back."""
        return updating.undoing(self.changes)


def import_records(
    text: str,
    *,
    format: str,
    by: User,
    dry_run: bool = False,
    update: bool = False,
    agreed: str = "",
) -> Imported:
    """Create everything of `text`, or nothing if one record has a problem.

    `format` is "json" (a list), "jsonl" or "csv". `record` says what a record is: application, function,
    query. Queries come as written: a person publishes them. What is there already is left alone, or
    with `update` gets the values that its record has, if `agreed` is the token of just these changes:
    else it is a dry run. Raises BadInput for another format.
    """
    report = Imported(dry_run=dry_run)
    records = list(read(text, format=format, columns=COLUMNS, problems=report.problems))
    if not records and report.ok:
        report.problems.append(Problem(1, "", "there is nothing in this file"))
    try:
        with transaction.atomic():
            for line, record in records:
                _one(line, record, by, report, update)
            report.problems.sort(key=lambda problem: problem.line)
            if report.token not in ("", agreed):
                report.dry_run = True
            if report.dry_run or not report.ok:
                raise _DryRun
    except _DryRun:
        pass
    return report


def _one(line: int, record: dict[str, Any], by: User, report: Imported, update: bool) -> None:
    found = _problems(line, record)
    if found:
        report.problems.extend(found)
        return
    try:
        with transaction.atomic():
            what = record["record"]
            make = {"application": _application, "function": _function, "query": _query}[what]
            row, new = make(record, by)
            changes = _update(line, record, row, by) if update and not new else []
            report.changes += changes
            if not changes:
                (report.created if new else report.existing).append(f"{what} {str(row)[:60]}")
    except _Wrong as error:
        report.problems.append(Problem(line, error.field, error.message))
    except ValidationError as error:
        for name, said in error.message_dict.items():
            shown = {"name": record["record"], "__all__": ""}.get(name, name)
            report.problems.extend(Problem(line, shown, one) for one in said)
    except Refused as error:
        report.problems.append(Problem(line, "", str(error)))


def _problems(line: int, record: dict[str, Any]) -> list[Problem]:
    """Return what is wrong with a record by itself."""
    what = record.get("record")
    if what not in FIELDS:
        return [Problem(line, "record", f"must be one of {', '.join(FIELDS)}")]
    found = []
    for name, value in record.items():
        if name == "record":
            continue
        if name not in FIELDS[what]:
            message = f"no field of a {what}; known: {', '.join(FIELDS[what])}"
        elif name in NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
            message = f"must be a number, not {value!r}"
        elif name in NUMBERS and not abs(value) <= LARGEST:
            message = "must be a number that ends"
        elif name in WHOLE and (isinstance(value, bool) or not isinstance(value, int)):
            message = f"must be a whole number, not {value!r}"
        elif name not in NUMBERS and name not in WHOLE and not isinstance(value, str):
            message = f"must be text, not {kind(value)}"
        elif why := storable.wrong(value):
            message = why
        else:
            continue
        found.append(Problem(line, name, message))
    for name in NEEDED[what]:
        if not str(record.get(name, "")).strip():
            found.append(Problem(line, name, "is missing"))
    return found


def _application(record: dict[str, Any], by: User) -> tuple[Application, bool]:
    name = record["application"].strip()
    known = Application.objects.select_for_update().filter(name=name).first()
    if known is not None:
        return known, False
    row = Application(name=name, **_values(record, (*NUMBERS[:3], *SOURCES)))
    _save(row)
    return row, True


def _function(record: dict[str, Any], by: User) -> tuple[Function, bool]:
    application = _known_application("application", record["application"])
    *above, name = _path(record["function"])
    parent = _find(application, above)
    rows = Function.objects.select_for_update()
    known = rows.filter(application=application, parent=parent, name=name).first()
    if known is not None:
        return known, False
    row = Function(
        application=application, parent=parent, name=name, **_values(record, NUMBERS[3:])
    )
    row.full_clean()
    graph.save_function(row)
    return row, True


def _query(record: dict[str, Any], by: User) -> tuple[Query, bool]:
    application = _known_application("application", record["application"])
    function = _find(application, _path(record["function"]))
    text = " ".join(record["text"].split())
    known = Query.objects.select_for_update().filter(function=function, text=text).first()
    if known is not None:
        return known, False
    row = Query(function=function, text=text, **_values(record, ("level", *WHOLE)))
    if "recorded_as" in record:
        row.kind = record["recorded_as"].strip()
    row.full_clean()
    queries.write(row, by=by, also=_also(record))
    return row, True


def _update(line: int, record: dict[str, Any], row: models.Model, by: User) -> list[Change]:
    """Give a row the values of its record; returns what that changed."""
    known = FIELDS[record["record"]]
    now = {"kind" if name == "recorded_as" else name: name for name in known}
    values = {
        said: getattr(row, name) for name, said in now.items() if said not in updating.NAMED_BY
    }
    if isinstance(row, Query):
        values["also"] = updating.joined(row.also.values_list("name", flat=True))
    changes = updating.compare(line, record, values)
    if not changes:
        return []
    for change in changes:
        if change.field != "also":
            setattr(row, "kind" if change.field == "recorded_as" else change.field, change.after)
    row.full_clean()
    if isinstance(row, Query):
        queries.write(row, by=by, also=_also(record) if "also" in record else list(row.also.all()))
    elif isinstance(row, Function):
        graph.save_function(row)
    else:
        row.save()
    updating.log(row, changes, by=by)
    return changes


def _also(record: dict[str, Any]) -> Sequence[Application]:
    return [_known_application("also", name) for name in updating.names(record.get("also", ""))]


def _known_application(field: str, name: str) -> Application:
    row = Application.objects.filter(name=name.strip()).first()
    if row is None:
        raise _Wrong(field, f"there is no application {name.strip()!r} before this line")
    return row


def _find(application: Application, path: list[str]) -> Function | None:
    """Return the function at a path; None for the empty one."""
    row = None
    for name in path:
        row = Function.objects.filter(application=application, parent=row, name=name).first()
        if row is None:
            raise _Wrong("function", f"{application} has no function {name!r} before this line")
    return row


def _path(text: str) -> list[str]:
    names = [name.strip() for name in text.split(graph.PATH)]
    if not all(names):
        raise _Wrong("function", f"a name is missing beside {graph.PATH}")
    return names


def _save(row: models.Model) -> None:
    row.full_clean()
    row.save()


def _values(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: record[name] for name in names if name in record}
    return {name: one.strip() if isinstance(one, str) else one for name, one in found.items()}
