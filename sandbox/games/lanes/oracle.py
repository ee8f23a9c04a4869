"""Goes to the nearest lane that is free in the next row; it does not drive into a car beside it."""

from __future__ import annotations

from sandbox.games.player import Decision, Look
from trajectory import Hotkey

LENGTH = 62
"""How near two cars' middles can come along the road, in pixels."""


def decide(look: Look) -> Decision:
    state = look.state
    lane, near = state["lane"], state["near"]
    ahead = [row for row in state["rows"] if row["y"] - near < LENGTH]
    if not ahead:
        return "The road is free, I stay.", Hotkey(("up",))
    row = max(ahead, key=lambda row: row["y"])
    free = [n for n in range(state["lanes"]) if n not in row["blocked"]]
    beyond = [other for other in ahead if other["y"] < row["y"]]
    after = max(beyond, key=lambda other: other["y"])["blocked"] if beyond else []
    target = min(free, key=lambda n: (abs(n - lane) + 0.6 * (n in after), n))
    if target == lane or abs(row["y"] - near) < LENGTH:
        return f"Lane {lane + 1} is free in the next row, I stay.", Hotkey(("up",))
    return f"Lane {target + 1} is free in the next row.", Hotkey(
        ("left" if target < lane else "right",)
    )
