"""Flaps when the bird is below the middle of the next gap."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Hotkey, Wait


def decide(look: Look) -> Decision:
    state, bird = look.state, look.state["bird"]
    upper = [p for p in state["pillars"] if p["y"] == 0 and p["x"] + p["width"] > bird["x"]]
    if upper:
        wanted = min(upper, key=lambda p: p["x"])["height"] + state["gap"] / 2
    else:
        wanted = state["height"] / 2
    # A flap lifts by 20 at once; in 100 ms the bird sinks by 6.
    if bird["y"] + bird["size"] / 2 > wanted + 7:
        return "The bird is too low for the next gap. I flap.", Hotkey(("up",))
    return "The bird is high enough.", Wait(0)
