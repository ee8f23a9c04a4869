"""What an import changes about rows that are there already: before and after, the history, the way back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import models

NAMED_BY = ("record", "application", "function", "text")


@dataclass(frozen=True, slots=True)
class Change:
    """One field that a line of a file changes; `record` is that line, by its fields."""

    line: int
    field: str
    before: Any
    after: Any
    record: Mapping[str, Any]

    @property
    def what(self) -> str:
        """Return what is changed, in words."""
        names = [str(self.record[name]) for name in NAMED_BY[1:] if name in self.record]
        return f"{self.record['record']} {' > '.join(names)}"


def compare(line: int, record: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Return what a record changes of `now`, the row's values by the same names."""
    named = {name: record[name] for name in NAMED_BY if name in record}
    found = []
    for name, before in now.items():
        if name not in record:
            continue
        after = record[name].strip() if isinstance(record[name], str) else record[name]
        if name == "also":
            after = joined(names(after))
        if after != before:
            found.append(Change(line, name, before, after, named))
    return found


def names(also: str) -> list[str]:
    """Return the applications that `also` names."""
    return [name.strip() for name in also.split(";") if name.strip()]


def joined(found: Iterable[str]) -> str:
    """Return names as `also` writes them."""
    return ";".join(sorted(found))


def log(row: models.Model, changes: list[Change], *, by: User) -> None:
    """Write the changes of one row into the history that Django's admin shows."""
    said = "; ".join(f"{one.field}: {one.before!r} → {one.after!r}" for one in changes)
    rows = type(row)._default_manager.filter(pk=row.pk)
    LogEntry.objects.log_actions(
        by.pk, rows, CHANGE, change_message=f"By an import. {said}"[:4000], single_object=True
    )


def token(changes: Iterable[Change]) -> str:
    """Return what names exactly these changes: who agrees to it has seen them."""
    whole = [(one.line, one.what, one.field, one.before, one.after) for one in changes]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:32]


def undoing(changes: Iterable[Change]) -> str:
    """Return JSON lines that put back what was, the last change first."""
    lines = [
        {**found[0].record, **{one.field: one.before for one in found}}
        for found in (list(group) for _, group in groupby(changes, key=lambda one: one.line))
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in reversed(lines))
