"""Searches over the pushes, fewest pushes first, and walks to where the next push starts."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look
from trajectory import Hotkey

Cells: TypeAlias = tuple[int, ...]
Push: TypeAlias = tuple[int, int]
"""A box's cell and the step that it is pushed by."""

_LIMIT = 60_000


def decide(look: Look) -> Decision:
    state = look.state
    size: int = state["cells"]
    keys = {-size: "up", 1: "right", size: "down", -1: "left"}
    walls = tuple(bool(wall) for wall in state["walls"])
    boxes, marks = tuple(sorted(state["boxes"])), tuple(state["marks"])
    player: int = state["player"]
    plan = solve(walls, marks, boxes, min(_reach(walls, boxes, player, size)), size)
    if plan is None and state["past"]:
        return "A box is stuck. I take the move back.", Hotkey(("z",))
    if not plan:
        raise NoWay("the boxes can't be pushed home from here")
    box, step = plan[0]
    if player == box - step:
        return f"I push the box {keys[step]}.", Hotkey((keys[step],))
    way = _reach(walls, boxes, player, size)[box - step]
    return f"I walk to the other side of a box, {keys[way]}.", Hotkey((keys[way],))


def _reach(walls: tuple[bool, ...], boxes: Cells, start: int, size: int) -> dict[int, int]:
    """Return each cell that can be walked to, with the first step of a shortest way."""
    first = {start: 0}
    todo = [start]
    for cell in todo:
        for step in (-size, 1, size, -1):
            after = cell + step
            if after not in first and not walls[after] and after not in boxes:
                first[after] = first[cell] or step
                todo.append(after)
    return first


@lru_cache(maxsize=4096)
def solve(
    walls: tuple[bool, ...], marks: Cells, boxes: Cells, player: int, size: int
) -> tuple[Push, ...] | None:
    """Return the pushes that bring every box home, () if they are, None if none were found.

    `player` is the smallest cell that can be walked to: where exactly the player stands is all one.
    """
    home = _distances(walls, marks, size)

    def guess(now: Cells) -> int:
        return sum(home.get(box, 1000) for box in now)

    todo = [(guess(boxes), 0, boxes, player)]
    came: dict[tuple[Cells, int], tuple[Cells, int, Push] | None] = {(boxes, player): None}
    while todo and len(came) < _LIMIT:
        _, pushes, now, where = heapq.heappop(todo)
        if set(now) == set(marks):
            return tuple(_back(came, (now, where)))
        area = _reach(walls, now, where, size)
        for box in now:
            for step in (-size, 1, size, -1):
                to = box + step
                if box - step not in area or walls[to] or to in now or to not in home:
                    continue
                after = tuple(sorted(to if b == box else b for b in now))
                key = (after, min(_reach(walls, after, box, size)))
                if key not in came:
                    came[key] = (now, where, (box, step))
                    heapq.heappush(todo, (pushes + 1 + guess(after), pushes + 1, *key))
    return None


def _distances(walls: tuple[bool, ...], marks: Cells, size: int) -> dict[int, int]:
    """Return for each cell the fewest pushes from it to a mark; cells without a way are missing."""
    found = dict.fromkeys(marks, 0)
    todo = list(marks)
    for cell in todo:
        for step in (-size, 1, size, -1):
            before, player = cell - step, cell - 2 * step
            inside = 0 <= player < len(walls) and not walls[before] and not walls[player]
            if inside and before not in found:
                found[before] = found[cell] + 1
                todo.append(before)
    return found


def _back(
    came: dict[tuple[Cells, int], tuple[Cells, int, Push] | None], end: tuple[Cells, int]
) -> Iterator[Push]:
    pushes: list[Push] = []
    while (step := came[end]) is not None:
        pushes.append(step[2])
        end = (step[0], step[1])
    return reversed(pushes)
