"""Tries every choice of presses in the first row: each row below it then follows."""

from __future__ import annotations

from itertools import product

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    side: int = look.state["side"]
    presses = solve(look.state["lamps"], side)
    row, column = divmod(presses[0], side)
    thought = f"{len(presses)} presses are left. I press row {row + 1}, column {column + 1}."
    return thought, look.click(f"lamp-{presses[0]}")


def solve(lamps: list[int], side: int) -> list[int]:
    """Return the fewest presses that put all lamps out; raises NoWay."""
    found = [presses for first in product((0, 1), repeat=side) if (presses := _chase(lamps, first))]
    if not found:
        raise NoWay("these lamps can't be put out")
    return min(found, key=len)


def _chase(lamps: list[int], first: tuple[int, ...]) -> list[int]:
    side, left, presses = len(first), list(lamps), []
    for index in range(side * side):
        row, column = divmod(index, side)
        if not (first[column] if row == 0 else left[index - side]):
            continue
        presses.append(index)
        for near in _near(row, column, side):
            left[near] ^= 1
    return [] if any(left) else presses


def _near(row: int, column: int, side: int) -> list[int]:
    places = [
        (row, column),
        (row - 1, column),
        (row + 1, column),
        (row, column - 1),
        (row, column + 1),
    ]
    return [r * side + c for r, c in places if 0 <= r < side and 0 <= c < side]
