"""Moves the paddle to where the lowest falling ball will be, by holding an arrow key."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.games.player import Decision, Look
from trajectory import Hotkey, KeyDown, KeyUp, Wait

_WALL, _PADDLE_Y, _STEP = 8.5, -10.0, 1.8
"""Where a ball's centre turns, and how far the paddle gets in one action, in metres of the world."""


def decide(look: Look) -> Decision:
    state = look.state
    if state["text"] == "Ready!":
        return "The ball waits. I start the game.", Hotkey(("space",))
    paddle = state["paddle"]
    if paddle is None or not state["balls"]:
        return "There is nothing to do.", Wait(0)
    x = _landing(min(state["balls"], key=_arrival))
    want = "right" if x > paddle["x"] + _STEP / 2 else "left" if x < paddle["x"] - _STEP / 2 else ""
    held = "left" if state["left"] else "right" if state["right"] else ""
    if held and held != want:
        return f"The paddle is far enough {held}. I let the key go.", KeyUp(held)
    if want and not held:
        return f"The ball comes down further {want}. I hold that key.", KeyDown(want)
    return "The paddle does what it should.", Wait(0)


def _arrival(ball: Mapping[str, float]) -> float:
    height = ball["y"] - _PADDLE_Y
    return height / -ball["vy"] if ball["vy"] < 0 else 100 + height


def _landing(ball: Mapping[str, float]) -> float:
    if ball["vy"] >= 0:
        return ball["x"] / 2
    x = ball["x"] + ball["vx"] * max(0.0, ball["y"] - _PADDLE_Y) / -ball["vy"]
    span = 4 * _WALL
    folded = (x + _WALL) % span
    return (folded if folded <= span / 2 else span - folded) - _WALL
