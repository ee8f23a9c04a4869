"""Goes below the fruit that reaches the ground first."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Move


def decide(look: Look) -> Decision:
    fruit, ground = look.state["fruit"], look.state["ground"]
    if not fruit:
        return "Nothing falls, I wait.", Move(240, 620)
    first = min(range(len(fruit)), key=lambda n: (ground - fruit[n]["y"]) / fruit[n]["speed"])
    spot = look.click(f"below-{first}")
    return "The basket must go below the lowest fruit.", Move(spot.x, spot.y)
