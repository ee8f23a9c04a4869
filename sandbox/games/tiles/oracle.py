"""Finds the shortest way by A* with the tiles' distances, and takes its first move."""

from __future__ import annotations

from heapq import heappop, heappush

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look

SIDE = 3
GOAL = (1, 2, 3, 4, 5, 6, 7, 8, 0)


def decide(look: Look) -> Decision:
    tiles = solve(tuple(look.state["order"]))
    return f"{len(tiles)} moves are left. Tile {tiles[0]} goes into the gap.", look.click(
        f"tile-{tiles[0]}"
    )


def solve(order: tuple[int, ...]) -> list[int]:
    """Return the tiles to slide, in order, as few as can be; raises NoWay."""
    queue = [(_distance(order), 0, order)]
    best: dict[tuple[int, ...], tuple[int, tuple[int, ...] | None, int]] = {order: (0, None, 0)}
    while queue:
        _, cost, here = heappop(queue)
        if here == GOAL:
            return _path(best, here)
        if cost > best[here][0]:
            continue
        gap = here.index(0)
        for place in _near(gap):
            there = list(here)
            there[gap], there[place] = there[place], 0
            after = tuple(there)
            if after not in best or cost + 1 < best[after][0]:
                best[after] = (cost + 1, here, here[place])
                heappush(queue, (cost + 1 + _distance(after), cost + 1, after))
    raise NoWay("these tiles can't be brought into order")


def _path(
    best: dict[tuple[int, ...], tuple[int, tuple[int, ...] | None, int]], end: tuple[int, ...]
) -> list[int]:
    tiles: list[int] = []
    here: tuple[int, ...] | None = end
    while here is not None:
        _, here, tile = best[here]
        tiles.append(tile)
    return tiles[-2::-1]


def _near(place: int) -> list[int]:
    row, column = divmod(place, SIDE)
    around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * SIDE + c for r, c in around if 0 <= r < SIDE and 0 <= c < SIDE]


def _distance(order: tuple[int, ...]) -> int:
    total = 0
    for place, tile in enumerate(order):
        if tile:
            row, column = divmod(place, SIDE)
            home_row, home_column = divmod(tile - 1, SIDE)
            total += abs(row - home_row) + abs(column - home_column)
    return total
