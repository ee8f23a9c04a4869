"""Finds how each tile must be turned by trying tile after tile, then turns the first wrong one."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    tiles: list[int] = look.state["tiles"]
    wanted = solve(tiles, look.state["columns"], look.state["rows"])
    index = next(n for n, bits in enumerate(tiles) if bits != wanted[n])
    row, column = divmod(index, look.state["columns"])
    thought = f"The tile in row {row + 1}, column {column + 1} has an end that meets nothing."
    return f"{thought} I turn it.", look.click(f"tile-{index}")


def solve(tiles: Sequence[int], columns: int, rows: int) -> list[int]:
    """Return the tiles turned so that no end is open; raises NoWay."""
    done: list[int] = []

    def fits(bits: int) -> bool:
        row, column = divmod(len(done), columns)
        above = row > 0 and bool(done[-columns] & 4)
        left = column > 0 and bool(done[-1] & 2)
        return (
            bool(bits & 1) == above
            and bool(bits & 8) == left
            and not (bits & 2 and column == columns - 1)
            and not (bits & 4 and row == rows - 1)
        )

    def go() -> bool:
        if len(done) == len(tiles):
            return True
        bits = tiles[len(done)]
        for _ in range(4):
            if fits(bits):
                done.append(bits)
                if go():
                    return True
                done.pop()
            bits = (bits << 1 | bits >> 3) & 15
        return False

    if not go():
        raise NoWay("the tiles can't be closed")
    return done
