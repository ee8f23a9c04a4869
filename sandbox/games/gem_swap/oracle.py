"""Of all swaps it makes the one after which most points are certain, without knowing what will fall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    gems, side = look.state["gems"], look.state["side"]
    ways = [(value(swapped(gems, a, b), side), a, b) for a, b in pairs(side)]
    best = max(ways, key=lambda way: (way[0], -way[1], -way[2]))
    if not best[0]:
        raise NoWay("no swap makes a line")
    _, a, b = best
    row, column = divmod(a, side)
    where = f"row {row + 1}, column {column + 1}"
    return f"I swap the gem in {where} for {best[0]} points.", look.drag(f"gem-{a}", f"gem-{b}")


def pairs(side: int) -> Iterator[tuple[int, int]]:
    for cell in range(side * side):
        if cell % side < side - 1:
            yield cell, cell + 1
        if cell + side < side * side:
            yield cell, cell + side


def swapped(gems: Sequence[int], a: int, b: int) -> list[int]:
    out = list(gems)
    out[a], out[b] = out[b], out[a]
    return out


def value(gems: list[int], side: int) -> int:
    """Return the points that are certain; -1 marks cells whose gem nobody knows yet."""
    points, factor = 0, 1
    while hit := lines(gems, side):
        points += 10 * factor * len(hit)
        factor += 1
        for x in range(side):
            column = [gems[c] for c in range(x, side * side, side) if c not in hit]
            gems[x::side] = [-1] * (side - len(column)) + column
    return points


def lines(gems: Sequence[int], side: int) -> set[int]:
    hit: set[int] = set()
    for line in [range(r * side, r * side + side) for r in range(side)] + [
        range(c, side * side, side) for c in range(side)
    ]:
        run: list[int] = []
        for cell in line:
            if run and gems[cell] == gems[run[0]] and gems[cell] >= 0:
                run.append(cell)
            else:
                run = [cell]
            if len(run) >= 3:
                hit.update(run)
    return hit
