"""Brings each knot to where it lay before the yarn was tangled; the state still knows that place."""

from __future__ import annotations

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    knots, home = look.state["knots"], look.state["home"]
    for number, (knot, place) in enumerate(zip(knots, home, strict=True)):
        if abs(knot[0] - place[0]) + abs(knot[1] - place[1]) <= 2:
            continue
        others = knots[:number] + knots[number + 1 :]
        if any(abs(x - place[0]) + abs(y - place[1]) < 4 for x, y in others):
            continue  # on top of another knot one can't be told from the other
        thought = "This knot's threads cross others, I drag it to a place where they do not."
        return thought, look.drag(f"knot-{number}", f"home-{number}")
    raise NoWay("every knot is at home and threads still cross")
