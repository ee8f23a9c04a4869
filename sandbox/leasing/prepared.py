"""Statements that the database plans once per connection and then only runs.

A claim takes longer to plan than to run, and Django's own cursors write every value into the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import psycopg
from django.db import connection, transaction


def run(statement: str, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
    """Run one statement, in the transaction there is or as one of its own; return its rows.

    `statement` must be one of few texts: each is kept by every connection. Raises the errors of
    django.db.
    """
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement.encode(), values, prepare=True)
        return cursor.fetchall()


def whole() -> AbstractContextManager[object]:
    """Undo one statement that fails; outside a transaction the database does so without being asked."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()
