"""Scrolls: canonical ones count notches both ways, most dialects one way or pixels."""

from __future__ import annotations

from agent.dialects.grammar import LossyConversion
from agent.dialects.verbs import DIRECTIONS
from trajectory import Scroll


def notches(amount: float, unit: float, *, nearest: bool, what: str) -> int:
    """Return a scroll of `amount` in notches of `unit`.

    Raises LossyConversion for a part of a notch; with `nearest` it is rounded, never to nothing.
    """
    whole = round(amount / unit)
    if whole * unit == amount:
        return whole
    if nearest:
        return whole or (1 if amount > 0 else -1)
    raise LossyConversion(f"{what}: {amount:g} is no whole number of notches of {unit:g}")


def one_way(action: Scroll) -> tuple[str, int]:
    """Return the direction and the notches of a scroll; raises LossyConversion for none or two."""
    for word, (dx, dy) in DIRECTIONS.items():
        amount = action.dx * dx + action.dy * dy
        if amount > 0 and (action.dx, action.dy) == (dx * amount, dy * amount):
            return word, amount
    raise LossyConversion(f"a scroll of ({action.dx}, {action.dy}) notches is no single direction")
