"""The scripted player of games in which pieces are placed and full lines vanish.

It puts the piece that leaves the best board: many lines, few nooks, room for what is still in the tray.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look

Cell: TypeAlias = tuple[int, int]
Piece: TypeAlias = Sequence[Sequence[int]]


class Grid(NamedTuple):
    """A board: which cells there are, which are full, and which lines vanish when full."""

    full: frozenset[Cell]
    cells: frozenset[Cell]
    lines: Sequence[frozenset[Cell]]

    def spots(self, piece: Piece) -> Iterator[tuple[Cell, frozenset[Cell]]]:
        """Yield where the piece's first cell can lie, and what it covers then."""
        free = self.cells - self.full
        for x, y in sorted(free):
            covered = frozenset((x + dx, y + dy) for dx, dy in piece)
            if covered <= free:
                yield (x, y), covered

    def after(self, covered: frozenset[Cell]) -> tuple[Grid, int]:
        """Return the board with `covered` full and full lines gone, and how many went."""
        full = self.full | covered
        done = [line for line in self.lines if line <= full]
        return self._replace(full=full.difference(*done)), len(done)

    def roughness(self) -> int:
        """Count the sides between a full and a free cell, and twice over what hems a free cell in."""
        around = [(1, 0), (-1, 0), (0, 1), (0, -1)]
        total = 0
        for x, y in self.cells - self.full:
            near = [(x + dx, y + dy) for dx, dy in around]
            walls = sum(cell in self.full or cell not in self.cells for cell in near)
            total += walls + (3 if walls >= 3 else 0) + (4 if walls == 4 else 0)
        return total


def decide(look: Look) -> Decision:
    state = look.state
    cells: list[Cell] = [(x, y) for x, y in state["cells"]]
    grid = Grid(
        frozenset(cell for cell, full in zip(cells, state["full"], strict=True) if full),
        frozenset(cells),
        [frozenset(cells[n] for n in line) for line in state["lines"]],
    )
    tray: list[Piece | None] = state["tray"]
    best: tuple[float, int, Cell] | None = None
    for slot, piece in enumerate(tray):
        if piece is None:
            continue
        rest = [other for n, other in enumerate(tray) if other is not None and n != slot]
        for cell, covered in grid.spots(piece):
            after, gone = grid.after(covered)
            stuck = sum(next(after.spots(other), None) is None for other in rest)
            value = 12 * gone * gone - after.roughness() - 2 * len(after.full) - 60 * stuck
            if best is None or value > best[0]:
                best = (value, slot, cell)
    if best is None:
        raise NoWay("no piece of the tray fits")
    _, slot, cell = best
    thought = f"Piece {slot + 1} lies best where it leaves the fewest gaps."
    return thought, look.drag(f"piece-{slot}", f"drop-{slot}-{cells.index(cell)}")
