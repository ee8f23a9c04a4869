"""Records of an import file: JSON list, JSON lines or CSV, each with the line on which it begins."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.errors import BadInput

FORMATS = ("json", "jsonl", "csv")
Records = Iterator[tuple[int, dict[str, Any]]]


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

    created: list[str] = field(default_factory=list)  # what names each
    existing: list[str] = field(default_factory=list)  # left as they are
    problems: list[Problem] = field(default_factory=list)
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of a record: which there are, which a CSV needs, and how a cell becomes a value."""

    noun: str
    known: Sequence[str]
    required: Sequence[str]
    read: Mapping[str, Any]  # cell -> value, raises ValueError; others are text


def read(text: str, *, format: str, columns: Columns, problems: list[Problem]) -> Records:
    """Yield each record with its line; what can't be read goes to `problems`. Raises BadInput."""
    if format not in FORMATS:
        raise BadInput(f"format: must be one of {', '.join(FORMATS)}")
    if format == "csv":
        yield from _csv(text, columns, problems)
    elif format == "jsonl":
        for line, source in enumerate(text.split("\n"), start=1):
            if source.strip():
                yield from _object(line, source, columns, problems)
    else:
        yield from _list(text, columns, problems)


def _object(line: int, source: str, columns: Columns, problems: list[Problem]) -> Records:
    try:
        record = json.loads(source)
    except ValueError as error:
        problems.append(Problem(line, "", f"not JSON: {error}"))
        return
    if isinstance(record, dict):
        yield line, record
    else:
        problems.append(Problem(line, "", f"{columns.noun} is an object, not {kind(record)}"))


def _list(text: str, columns: Columns, problems: list[Problem]) -> Records:
    """Read one element after the other, so that each knows the line on which it begins."""
    decoder = json.JSONDecoder()
    at = _skip_space(text, 0)
    if not text.startswith("[", at):
        problems.append(Problem(1, "", "a JSON import is a list: [ {...}, ... ]"))
        return
    line, counted = 1, 0
    at = _skip_space(text, at + 1)
    while not text.startswith("]", at):
        line, counted = line + text.count("\n", counted, at), at
        try:
            record, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            problems.append(Problem(error.lineno, "", f"not JSON: {error.msg}"))
            return
        if isinstance(record, dict):
            yield line, record
        else:
            problems.append(Problem(line, "", f"{columns.noun} is an object, not {kind(record)}"))
        at = _skip_space(text, at)
        if text.startswith(",", at):
            at = _skip_space(text, at + 1)
        elif not text.startswith("]", at):
            problems.append(Problem(text.count("\n", 0, at) + 1, "", "a comma or ] is missing"))
            return


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _csv(text: str, columns: Columns, problems: list[Problem]) -> Records:
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        yield from _rows(reader, columns, problems)
    except csv.Error as error:  # most often a quote that is not closed: the rest is one cell
        problems.append(Problem(reader.line_num, "", f"not CSV: {error}"))


def _rows(reader: Any, columns: Columns, problems: list[Problem]) -> Records:
    header = [name.strip() for name in next(reader, [])]
    for name in columns.required:
        if name not in header:
            problems.append(Problem(1, name, "this column is missing in the header"))
    for name in header:
        if name not in columns.known:
            known = ", ".join(columns.known)
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
        yield here, {name: _cell(name, value, columns) for name, value in cells.items()}


def _cell(name: str, value: str, columns: Columns) -> object:
    """Return a cell as the value of its field; one that can't be read stays text and is refused."""
    try:
        return columns.read[name](value) if name in columns.read else value
    except ValueError:
        return value


def kind(value: object) -> str:
    """Return what a JSON value is, in words."""
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null" if value is None else type(value).__name__)
