"""Hits the mole without a helmet that will be gone first."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Move


def decide(look: Look) -> Decision:
    moles = [m for m in look.state["moles"] if not m["hit"] and not m["bad"]]
    if not moles:
        return "There is no mole to hit, I wait.", Move(240, 600)
    mole = min(moles, key=lambda m: m["to"])
    return f"A mole looks out of hole {mole['hole'] + 1}.", look.click(f"hole-{mole['hole']}")
