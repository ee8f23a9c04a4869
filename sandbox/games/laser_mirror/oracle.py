"""Follows the beam and tries both ways of every mirror it meets; turns the first that must be turned."""

from __future__ import annotations

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    state = look.state
    wanted = solve(state["cells"], state["side"], state["source"], state["target"])
    cell = next(cell for cell, kind in wanted if state["cells"][cell] != kind)
    row, column = divmod(cell, state["side"])
    thought = f"The beam must bend the other way in row {row + 1}, column {column + 1}."
    return thought, look.click(f"mirror-{cell}")


def solve(cells: list[str], side: int, source: int, target: int) -> list[tuple[int, str]]:
    """Return how the mirrors on the beam's way must stand, in its order; raises NoWay.

    Of all ways the one with the fewest turns.
    """
    found: list[tuple[int, list[tuple[int, str]]]] = []

    def follow(x: int, y: int, dx: int, dy: int, fixed: dict[int, str], turns: int) -> None:
        while 0 <= x < side and 0 <= y < side:
            cell = y * side + x
            if cell == target:
                found.append((turns, list(fixed.items())))
                return
            if cells[cell] == "#":
                return
            if cells[cell] == ".":
                x, y = x + dx, y + dy
                continue
            # A beam that meets a mirror twice finds it as it was the first time.
            for kind in [fixed[cell]] if cell in fixed else ["/", "\\"]:
                bent = (-dy, -dx) if kind == "/" else (dy, dx)
                again = cell in fixed
                more = turns + (not again and cells[cell] != kind)
                if len(fixed) < side * 3 and more <= 8:
                    follow(x + bent[0], y + bent[1], *bent, {**fixed, cell: kind}, more)
            return

    follow(0, source, 1, 0, {}, 0)
    if not found:
        raise NoWay("no way of the mirrors brings the beam to the target")
    return min(found, key=lambda way: way[0])[1]
