"""Searches an order of taking the tiles that never fills the row, triples that are begun first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look

_TRIES = 20_000


def decide(look: Look) -> Decision:
    tiles = look.state["tiles"]
    index = solve(tiles, look.state["row"], look.state["room"])[0]
    kind = tiles[index]["kind"]
    held = sum(tiles[n]["kind"] == kind for n in look.state["row"])
    why = f"{held} of it are in the row" if held else "none of it is in the row yet"
    return f"I take a {kind}: {why}.", look.click(f"tile-{index}")


def solve(tiles: Sequence[Mapping[str, Any]], row: Sequence[int], room: int) -> list[int]:
    """Return the tiles to take, in order; raises NoWay."""
    key = tuple((t["kind"], t["x"], t["y"], t["layer"]) for t in tiles)
    left = frozenset(n for n, tile in enumerate(tiles) if not tile["taken"])
    held = Counter(tiles[n]["kind"] for n in row)
    return _solve(key, left, tuple(sorted(held.items())), room)


@lru_cache(maxsize=64)
def _solve(
    tiles: tuple[tuple[str, int, int, int], ...],
    left: frozenset[int],
    row: tuple[tuple[str, int], ...],
    room: int,
) -> list[int]:
    above = _above(tiles)
    seen: set[frozenset[int]] = set()

    def go(rest: frozenset[int], held: Counter[str]) -> list[int] | None:
        if not rest:
            return []
        if rest in seen or held.total() >= room or len(seen) > _TRIES:
            return None
        seen.add(rest)
        free = [n for n in sorted(rest) if not above[n] & rest]
        ready = Counter(tiles[n][0] for n in free)
        # First what can be completed at once, then what has been begun, then the highest tiles.
        free.sort(key=lambda n: _rank(held[tiles[n][0]], ready[tiles[n][0]], tiles[n][3]))
        for n in free:
            kind = tiles[n][0]
            after = held.copy()
            after[kind] = (held[kind] + 1) % 3
            if (way := go(rest - {n}, after)) is not None:
                return [n, *way]
        return None

    found = go(left, Counter(dict(row)))
    if not found:
        raise NoWay("no order of taking the tiles keeps the row from filling up")
    return found


def _rank(held: int, ready: int, layer: int) -> tuple[bool, int, int]:
    return (held + ready < 3, -held, -layer)


def _above(tiles: tuple[tuple[str, int, int, int], ...]) -> list[frozenset[int]]:
    size = min(abs(a[1] - b[1]) for a in tiles for b in tiles if a[3] == b[3] and a[1] != b[1])
    return [
        frozenset(
            n
            for n, (_, a, b, higher) in enumerate(tiles)
            if higher > layer and abs(a - x) < size and abs(b - y) < size
        )
        for _, x, y, layer in tiles
    ]
