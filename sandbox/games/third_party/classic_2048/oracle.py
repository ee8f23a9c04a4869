"""Looks two moves ahead and keeps big tiles in a corner: a plain player, far from the best."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Hotkey

Board = tuple[tuple[int, ...], ...]
"""Columns from left to right, each from top to bottom; 0 is empty."""

_KEYS = ("left", "down", "up", "right")
_WEIGHTS = (
    (10, 8, 12, 15),
    (1, 4, 6, 10),
    (0, 1, 3, 6),
    (0, 0, 1, 4),
)


def decide(look: Look) -> Decision:
    key = choose(tuple(tuple(column) for column in look.state["cells"]))
    return f"Sliding {key} keeps the big tiles together.", Hotkey((key,))


def choose(board: Board) -> str:
    """Return the key of the best slide."""
    options = [(value, key) for key in _KEYS if (value := _worth(board, key, 2)) is not None]
    return max(options)[1] if options else "left"


def slide(board: Board, key: str) -> tuple[Board, int]:
    """Return the board after a slide, without the new tile, and the points that it gives."""
    lines = board if key in ("up", "down") else tuple(zip(*board, strict=True))
    back = key in ("down", "right")
    moved, points = [], 0
    for line in lines:
        pushed, gained = _push(line[::-1] if back else line)
        points += gained
        moved.append(pushed[::-1] if back else pushed)
    result = tuple(moved)
    return (result if key in ("up", "down") else tuple(zip(*result, strict=True))), points


def _push(line: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    tiles, out, points = [n for n in line if n], [], 0
    while tiles:
        first = tiles.pop(0)
        if tiles and tiles[0] == first:
            first += tiles.pop(0)
            points += first
        out.append(first)
    return tuple(out + [0] * (len(line) - len(out))), points


def _worth(board: Board, key: str, depth: int) -> float | None:
    after, points = slide(board, key)
    if after == board:
        return None
    here = _value(after) + points
    if depth == 1:
        return here
    later = [value for nxt in _KEYS if (value := _worth(after, nxt, depth - 1)) is not None]
    return here + max(later, default=-1e6)


def _value(board: Board) -> float:
    placed = sum(
        weight * tile
        for weights, column in zip(_WEIGHTS, board, strict=True)
        for weight, tile in zip(weights, column, strict=True)
    )
    room = sum(tile == 0 for column in board for tile in column)
    return placed / 4 + 12 * room
