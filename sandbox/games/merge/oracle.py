"""Tries the two known numbers in every pair of columns and drops for the best board after both."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look

Columns: TypeAlias = list[list[int]]


def decide(look: Look) -> Decision:
    state = look.state
    first, second = state["next"]
    best: tuple[float, int] | None = None
    for c, column in enumerate(state["columns"]):
        if len(column) >= state["rows"]:
            continue
        after, points = dropped(state["columns"], c, first)
        value = points + max(
            (
                more + worth(further, state["rows"])
                for d in range(len(after))
                if len(after[d]) < state["rows"]
                for further, more in [dropped(after, d, second)]
            ),
            default=-1000.0,
        )
        if best is None or value > best[0]:
            best = (value, c)
    if best is None:
        raise NoWay("every column is full")
    return f"The {first} fits best into column {best[1] + 1}.", look.click(f"column-{best[1]}")


def dropped(columns: Columns, c: int, number: int) -> tuple[Columns, int]:
    """Return the columns after `number` came to rest in column `c`, and the points for it."""
    out = [list(column) for column in columns]
    out[c].append(number)
    row, points = len(out[c]) - 1, 0
    while True:
        value = out[c][row]
        sides = [
            n for n in (c - 1, c + 1) if 0 <= n < len(out) and out[n][row : row + 1] == [value]
        ]
        below = row > 0 and out[c][row - 1] == value
        if not sides and not below:
            return out, points
        for n in sides:
            del out[n][row]
        out[c][row] = value * 2 ** (len(sides) + below)
        points += out[c][row]
        if below:
            row -= 1
            del out[c][row]


def worth(columns: Columns, rows: int) -> float:
    """Judge a board: low columns, and each number on one that is twice as large."""
    value = 0.0
    for column in columns:
        value -= 4.0 * len(column) + (60 if len(column) >= rows - 1 else 0)
        for under, over in pairwise(column):
            value += 6 if under == 2 * over else -6 if under < over else 0
    return value
