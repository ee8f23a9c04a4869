"""What a task changed in a database: the rows that came and went, and nothing else.

A check made of it asks for exactly that change, so that whoever does more or less is not rewarded. Keys
that the database gives out by itself ("id") do not count: two ways of doing the same may differ there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

State: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
Change: TypeAlias = dict[str, dict[str, list[dict[str, Any]]]]
"""Table -> {"came": rows, "went": rows}, without the tables that stayed the same."""


def between(before: State, after: State) -> Change:
    """Return what changed; {} if nothing did. A changed row went and came."""
    found: Change = {}
    for table in sorted({*before, *after}):
        old, new = (Counter(map(_row, rows.get(table, ()))) for rows in (before, after))
        came, went = new - old, old - new
        if came or went:
            found[table] = {"came": _rows(came), "went": _rows(went)}
    return found


def told(change: Change) -> str:
    """Return a change in a few words, for a verdict."""
    parts = [
        f"{table}: {len(rows['came'])} came, {len(rows['went'])} went"
        for table, rows in change.items()
    ]
    return "; ".join(parts) or "nothing changed"


def values(change: Change) -> set[str]:
    """Return every value of the rows that came, as texts: what somebody entered is among them."""
    return {
        str(value) for rows in change.values() for row in rows["came"] for value in row.values()
    }


def _row(row: Mapping[str, Any]) -> str:
    return json.dumps({k: v for k, v in row.items() if k != "id"}, sort_keys=True)


def _rows(counted: Counter[str]) -> list[dict[str, Any]]:
    return [json.loads(row) for row in sorted(counted.elements())]
