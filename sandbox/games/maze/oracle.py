"""Walks the only way that leads to the flag."""

from __future__ import annotations

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look
from trajectory import Hotkey

WAYS = {"up": (0, -1, 1), "right": (1, 0, 2), "down": (0, 1, 4), "left": (-1, 0, 8)}


def decide(look: Look) -> Decision:
    key = way(look.state["cells"], look.state["side"], look.state["place"], look.state["goal"])
    return f"The way to the flag goes {key} from here.", Hotkey((key,))


def way(cells: list[int], side: int, place: int, goal: int) -> str:
    """Return the key of the first step from `place` to `goal`; raises NoWay."""
    seen, queue = {goal}, [goal]
    while queue:
        here = queue.pop(0)
        for key, (dx, dy, bit) in WAYS.items():
            # Seen from the far end: a step `key` leads from `there` to `here`.
            there = here - dy * side - dx
            if not 0 <= there < len(cells) or there in seen or not cells[there] & bit:
                continue
            if there == place:
                return key
            seen.add(there)
            queue.append(there)
    raise NoWay("no way leads to the flag")
