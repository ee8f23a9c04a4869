"""Tries every place for the block and takes the one that leaves the lowest, smoothest heap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sandbox.games.player import Decision, Look
from trajectory import Hotkey

Grid = Sequence[Sequence[int]]
Cells = Sequence[tuple[int, int]]


def decide(look: Look) -> Decision:
    state = look.state
    block, grid = state["block"], state["grid"]
    shape = state["blocks"][block["kind"]]
    # Only places that the block can still reach from where it is: turn first, then shift, then drop.
    best = max(
        (
            (worth, -abs(x - block["x"]), turns, x)
            for turns in range(4)
            for x in range(-2, state["columns"])
            if (worth := _worth(grid, _turned(shape, turns), x, block["y"])) is not None
        ),
        default=None,
    )
    if best is None:
        return "There is no good place. I drop the block.", Hotkey(("space",))
    _, _, turns, x = best
    if turns != block["turns"]:
        return "The block fits better when it is turned.", Hotkey(("up",))
    if x != block["x"]:
        side = "left" if x < block["x"] else "right"
        return f"The block belongs further {side}.", Hotkey((side,))
    return "The block is over its place. I drop it.", Hotkey(("space",))


def _turned(shape: Mapping[str, Any], turns: int) -> Cells:
    cells = [(x, y) for x, y in shape["cells"]]
    for _ in range(turns):
        cells = [(shape["size"] - 1 - y, x) for x, y in cells]
    return cells


def _fits(grid: Grid, cells: Cells, x: int, y: int) -> bool:
    return all(
        0 <= x + dx < len(grid[0])
        and y + dy < len(grid)
        and (y + dy < 0 or not grid[y + dy][x + dx])
        for dx, dy in cells
    )


def _worth(grid: Grid, cells: Cells, x: int, y: int) -> float | None:
    """Return how good the heap is after a drop at column `x` from row `y`; None if it can't be."""
    if not _fits(grid, cells, x, y):
        return None
    while _fits(grid, cells, x, y + 1):
        y += 1
    filled = [list(row) for row in grid]
    for dx, dy in cells:
        filled[y + dy][x + dx] = 1
    kept = [row for row in filled if not all(row)]
    full = len(filled) - len(kept)
    kept = [[0] * len(grid[0]) for _ in range(full)] + kept
    heights, holes = [], 0
    for column in zip(*kept, strict=True):
        top = next((n for n, cell in enumerate(column) if cell), len(column))
        heights.append(len(column) - top)
        holes += sum(1 for cell in column[top:] if not cell)
    rough = sum(abs(a - b) for a, b in pairwise(heights))
    return 0.76 * full - 0.51 * sum(heights) - 0.36 * holes - 0.18 * rough
