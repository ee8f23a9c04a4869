"""Aims by the ghost ball: the white ball must be behind the target, on its line to a pocket."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sandbox.games.player import Decision, Look
from trajectory import Drag, Wait

_RADIUS = 0.12
_POCKETS = ((0, -2.3), (0, 2.3), (4.1, 2.1), (-4.1, 2.1), (4.1, -2.1), (-4.1, -2.1))
Spot = tuple[float, float]


def decide(look: Look) -> Decision:
    balls = look.state["balls"]
    if any(ball["speed"] > 0.05 for ball in balls):
        return "The balls still roll.", Wait(0)
    white = next(_spot(ball) for ball in balls if ball["colour"] == "white")
    others = [(_spot(ball), ball["colour"]) for ball in balls if ball["colour"] != "white"]
    shots = [
        shot
        for place, colour in others
        for pocket in _POCKETS
        if (shot := _shot(white, place, pocket, [o for o, _ in others if o != place], colour))
    ]
    if not shots:
        nearest = min(others, key=lambda other: math.dist(white, other[0]))[0]
        return "No ball can be potted directly. I open the pack.", _drag(look, white, nearest, 1.6)
    _, ghost, colour, power = max(shots)
    return f"The {colour} ball is open to a pocket.", _drag(look, white, ghost, power)


def _spot(ball: Mapping[str, float]) -> Spot:
    return ball["x"], ball["y"]


def _shot(
    white: Spot, ball: Spot, pocket: Spot, others: Sequence[Spot], colour: str
) -> tuple[float, Spot, str, float] | None:
    way = math.dist(ball, pocket)
    ux, uy = (pocket[0] - ball[0]) / way, (pocket[1] - ball[1]) / way
    ghost = (ball[0] - ux * 2 * _RADIUS, ball[1] - uy * 2 * _RADIUS)
    run = math.dist(white, ghost)
    if run < 1e-6:
        return None
    straight = ((ghost[0] - white[0]) * ux + (ghost[1] - white[1]) * uy) / run
    if straight < 0.5 or any(
        _near(other, white, ghost) or _near(other, ball, pocket) for other in others
    ):
        return None
    power = min(2.0, 0.45 + (run + way / straight) * 0.15)
    return straight / (run + way + 1), ghost, colour, power


def _near(spot: Spot, start: Spot, end: Spot) -> bool:
    length = math.dist(start, end)
    along = (
        (spot[0] - start[0]) * (end[0] - start[0]) + (spot[1] - start[1]) * (end[1] - start[1])
    ) / length
    if not 0 < along < length:
        return False
    across = math.sqrt(max(0.0, math.dist(spot, start) ** 2 - along**2))
    return across < 2 * _RADIUS


def _drag(look: Look, white: Spot, aim: Spot, power: float) -> Drag:
    """Pull back from the white ball by about `power` metres, to the pixel that is best in line."""
    scale = look.at["edge"][0] - look.at["middle"][0]
    angle = math.atan2(aim[1] - white[1], white[0] - aim[0])
    x, y = look.at["white"]

    def end(length: float) -> tuple[int, int]:
        return round(x + length * math.cos(angle)), round(y + length * math.sin(angle))

    def off(length: float) -> float:
        right, down = end(length)
        turn = math.atan2(down - y, right - x) - angle
        return abs(math.remainder(turn, 2 * math.pi))

    longest = round(power * scale)
    lengths = [n for n in range(longest * 2 // 3, longest) if _on_page(end(n))]
    best = min(lengths, key=off, default=20)
    return Drag(((round(x), round(y)), end(best)))


def _on_page(pixel: tuple[int, int]) -> bool:
    return 2 <= pixel[0] <= 717 and 2 <= pixel[1] <= 377
