"""Jumps when the next cactus is as near as the dinosaur's jump is long at this speed."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Hotkey, Wait

_WIDTH = 44


def decide(look: Look) -> Decision:
    state = look.state
    if not state["started"]:
        return "The dinosaur stands still. I jump to start.", Hotkey(("up",))
    ahead = [o["x"] - (state["x"] + _WIDTH) for o in state["obstacles"] if o["x"] > state["x"]]
    # One action is three frames, and in a frame the ground moves by `speed` pixels.
    near = 9 * state["speed"]
    if ahead and min(ahead) < near and not state["jumping"]:
        return "A cactus is close. I jump.", Hotkey(("up",))
    return "Nothing to jump over yet.", Wait(0)
