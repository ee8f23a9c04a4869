"""Finds the fewest slides by trying all positions in order of distance, and makes the first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


class Block(NamedTuple):
    x: int
    y: int
    length: int
    across: bool

    def cells(self, side: int) -> list[int]:
        step = 1 if self.across else side
        return [self.y * side + self.x + n * step for n in range(self.length)]

    def moved(self, by: int) -> Block:
        return self._replace(x=self.x + by) if self.across else self._replace(y=self.y + by)


Position: TypeAlias = tuple[Block, ...]


def decide(look: Look) -> Decision:
    side: int = look.state["side"]
    position = tuple(Block(b["x"], b["y"], b["length"], b["across"]) for b in look.state["blocks"])
    index, by = solve(position, side)[0]
    start, end = position[index].cells(side)[0], position[index].moved(by).cells(side)[0]
    where = (
        ("right" if by > 0 else "left") if position[index].across else ("down" if by > 0 else "up")
    )
    name = "the key block" if index == 0 else "a block that is in the way"
    return f"I slide {name} {where} by {abs(by)}.", look.drag(f"cell-{start}", f"cell-{end}")


@lru_cache(maxsize=256)
def solve(start: Position, side: int) -> tuple[tuple[int, int], ...]:
    """Return the slides (block, cells) that free the key, as few as can be; raises NoWay."""
    came: dict[Position, tuple[Position, tuple[int, int]] | None] = {start: None}
    front = [start]
    while front:
        following = []
        for here in front:
            if here[0].x + here[0].length == side:
                return _path(came, here)
            for index, by in _slides(here, side):
                after = (*here[:index], here[index].moved(by), *here[index + 1 :])
                if after not in came:
                    came[after] = (here, (index, by))
                    following.append(after)
        front = following
    raise NoWay("the key can't be freed")


def _path(
    came: dict[Position, tuple[Position, tuple[int, int]] | None], end: Position
) -> tuple[tuple[int, int], ...]:
    slides: list[tuple[int, int]] = []
    here = came[end]
    while here is not None:
        slides.insert(0, here[1])
        here = came[here[0]]
    return tuple(slides)


def _slides(position: Position, side: int) -> Iterator[tuple[int, int]]:
    taken = {cell for block in position for cell in block.cells(side)}
    for index, block in enumerate(position):
        own = set(block.cells(side))
        start = block.x if block.across else block.y
        for direction, most in ((-1, start), (1, side - block.length - start)):
            for by in range(1, most + 1):
                if set(block.moved(direction * by).cells(side)) & (taken - own):
                    break
                yield index, direction * by
