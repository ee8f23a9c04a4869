"""Whether JSON that came from outside can be kept in the database as it is. Pure."""

from __future__ import annotations

import math


def wrong(value: object) -> str:
    """Return what of a JSON value PostgreSQL does not take; "" where it takes all of it.

    That is U+0000 and half a surrogate pair in a text, and numbers that do not end.
    """
    left = [value]  # no recursion: how deep it is nested is the sender's choice
    while left:
        match left.pop():
            case str() as text:
                if "\0" in text:
                    return "it holds a character (U+0000) that can't be stored"
                if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                    return "it holds half of a character (a lone surrogate)"
            case float() as number if not math.isfinite(number):
                return f"it holds the number {number}"
            case dict() as record:
                left.extend(record)
                left.extend(record.values())
            case list() | tuple() as values:
                left.extend(values)
            case _:
                pass
    return ""


def text(said: str) -> str:
    """Return a text with every character that PostgreSQL does not take replaced by "?"."""
    return said.replace("\0", "?").encode("utf-8", "replace").decode()
