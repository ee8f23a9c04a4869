"""Searches a way over all cells that are left; where there is none it goes one step back."""

from __future__ import annotations

from functools import lru_cache

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look
from trajectory import Hotkey

WAYS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}


def decide(look: Look) -> Decision:
    side, body = look.state["side"], look.state["body"]
    rest = frozenset(n for n, free in enumerate(look.state["free"]) if free) - set(body)
    way = solve(body[-1], rest, side)
    if way:
        key = _key(body[-1], way[0], side)
        return f"{len(rest)} cells are left. The way over all of them goes {key}.", Hotkey((key,))
    if len(body) < 2:
        raise NoWay("no way leads over all cells")
    key = _key(body[-1], body[-2], side)
    return "From here not all cells can be reached, I step back.", Hotkey((key,))


@lru_cache(maxsize=4096)
def solve(head: int, rest: frozenset[int], side: int) -> tuple[int, ...]:
    """Return a way from `head` over all of `rest`, () if there is none; most hemmed-in cells first."""
    if not rest:
        return ()
    near = sorted(_near(head, side) & rest, key=lambda cell: len(_near(cell, side) & rest))
    for cell in near:
        left = rest - {cell}
        if not left:
            return (cell,)
        if way := solve(cell, left, side):
            return (cell, *way)
    return ()


def _near(cell: int, side: int) -> set[int]:
    x, y = cell % side, cell // side
    places = [(x + dx, y + dy) for dx, dy in WAYS.values()]
    return {b * side + a for a, b in places if 0 <= a < side and 0 <= b < side}


def _key(start: int, end: int, side: int) -> str:
    step = (end % side - start % side, end // side - start // side)
    return next(key for key, way in WAYS.items() if way == step)
