"""Jumps when the next group of cacti fits below the jump, as late as that."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Hotkey, Wait

_WIDTH, _LOW, _HIGH = 44, 8, 29
"""The dinosaur's width in pixels; the frames of a jump between which it is above the cacti."""


def decide(look: Look) -> Decision:
    state = look.state
    if not state["started"]:
        return "The dinosaur stands still. I jump to start.", Hotkey(("up",))
    ahead = [o for o in state["obstacles"] if o["x"] + o["width"] > state["x"]]
    if ahead and not state["jumping"]:
        first = min(ahead, key=lambda o: o["x"])
        away = first["x"] - (state["x"] + _WIDTH)
        # In a frame the ground moves by `speed` pixels; an action is three frames.
        latest = _HIGH * state["speed"] - first["width"] - _WIDTH
        if away < max(latest, (_LOW + 3) * state["speed"]):
            return "A cactus is close. I jump.", Hotkey(("up",))
    return "Nothing to jump over yet.", Wait(0)
