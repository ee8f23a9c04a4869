"""Compares each piece with the hole."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    now = look.state["rounds"][look.state["round"]]
    hole = at_home(now["hole"])
    choice = next(n for n, cells in enumerate(now["choices"]) if at_home(cells) == hole)
    return f"Piece {choice + 1} has the outline of the hole.", look.click(f"choice-{choice}")


def at_home(cells: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Return the cells moved to the top left."""
    left, top = min(x for x, _ in cells), min(y for _, y in cells)
    return {(x - left, y - top) for x, y in cells}
