"""Takes the shortest way to the food if it can get out again, else the move with the most room."""

from __future__ import annotations

from collections import deque

from sandbox.games.player import Decision, Look
from trajectory import Hotkey, Wait

Cell = tuple[int, int]
_KEYS: dict[Cell, str] = {(0, -1): "up", (1, 0): "right", (0, 1): "down", (-1, 0): "left"}


def decide(look: Look) -> Decision:
    state = look.state
    snake: list[Cell] = [(x, y) for x, y in state["snake"]]
    way: Cell = (state["way"][0], state["way"][1])
    size: int = state["cells"]
    # The last part moves away while the head arrives.
    walls = set(snake[:-1])
    step = _towards(snake[0], tuple(state["food"]), walls, size)
    if step is None or _room(_add(snake[0], step), walls, size) < len(snake):
        options = [w for w in _KEYS if _free(_add(snake[0], w), walls, size)]
        step = max(options, key=lambda w: _room(_add(snake[0], w), walls, size), default=way)
        thought = f"The way {_KEYS[step]} leaves the most room."
    else:
        thought = f"The food is reached fastest by going {_KEYS[step]}."
    return (thought, Wait(0)) if step == way else (thought, Hotkey((_KEYS[step],)))


def _add(cell: Cell, way: Cell) -> Cell:
    return cell[0] + way[0], cell[1] + way[1]


def _free(cell: Cell, walls: set[Cell], size: int) -> bool:
    return cell not in walls and 0 <= cell[0] < size and 0 <= cell[1] < size


def _towards(start: Cell, goal: tuple[int, ...], walls: set[Cell], size: int) -> Cell | None:
    """Return the first step of a shortest way from `start` to `goal`, None if there is none."""
    first: dict[Cell, Cell] = {}
    todo = deque([start])
    while todo:
        cell = todo.popleft()
        if cell == goal:
            return first[cell]
        for way in _KEYS:
            after = _add(cell, way)
            if after not in first and after != start and _free(after, walls, size):
                first[after] = first.get(cell, way)
                todo.append(after)
    return None


def _room(start: Cell, walls: set[Cell], size: int) -> int:
    """Return how many cells can be reached from `start`."""
    seen, todo = {start}, [start]
    while todo:
        cell = todo.pop()
        for way in _KEYS:
            after = _add(cell, way)
            if after not in seen and _free(after, walls, size):
                seen.add(after)
                todo.append(after)
    return len(seen)
