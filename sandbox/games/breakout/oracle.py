"""Puts the paddle where the ball will come down, off its middle so that the ball goes to a brick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.games.player import Decision, Look
from trajectory import Move, Wait


def decide(look: Look) -> Decision:
    state = look.state
    ball = state["ball"]
    if ball["vy"] <= 0 and ball["y"] < state["side"] / 2:
        return "The ball goes up. There is time.", Wait(0)
    x = landing(state)
    # Hit left of the middle and the ball goes left: aim it at the middle of the bricks that are left.
    columns = [40.0 * (n % 10) + 30 for n in state["bricks"]] or [x]
    target = min(columns, key=lambda c: abs(c - state["side"] / 2))
    aim = max(-30.0, min(30.0, (target - x) / 6))
    left, top = look.at["start"]
    under = max(0.0, min(float(state["side"]), x - aim))
    return "The paddle goes under the ball.", Move(round(left + under), round(top))


def landing(state: Mapping[str, Any]) -> float:
    """Return where the ball reaches the paddle's line if nothing but the side walls is in its way."""
    ball, radius, side = state["ball"], state["radius"], state["side"]
    x, vy = ball["x"], abs(ball["vy"])
    if vy < 0.1:
        return float(x)
    down = (
        state["line"] - radius - ball["y"]
        if ball["vy"] > 0
        else state["line"] + ball["y"] - 3 * radius
    )
    x += ball["vx"] * max(0.0, down) / vy - radius
    span = side - 2 * radius
    folded = x % (2 * span)
    return float((folded if folded <= span else 2 * span - folded) + radius)
