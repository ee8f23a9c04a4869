"""Makes the swap that takes most candies at once, the lowest of them first."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.families.protocol import NoWay
from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    state = look.state
    side: int = state["side"]
    swaps = [
        (taken, a // side, a, b)
        for a in range(side * side)
        for b in (a + 1, a + side)
        if b < side * side
        and (b != a + 1 or b % side)
        and (taken := _taken(state["candies"], side, a, b))
    ]
    if not swaps:
        raise NoWay("no swap makes a line")
    taken, _, a, b = max(swaps)
    if state["chosen"] == a:
        return f"The swap takes {taken} candies.", look.click(f"candy-{b}")
    return "I take the first candy of the best swap.", look.click(f"candy-{a}")


def _taken(candies: Sequence[int], side: int, a: int, b: int) -> int:
    """Return how many candies stand in lines after a swap."""
    after = list(candies)
    after[a], after[b] = after[b], after[a]
    hit: set[int] = set()
    rows = [range(n * side, (n + 1) * side) for n in range(side)]
    columns = [range(n, side * side, side) for n in range(side)]
    for line in (*rows, *columns):
        run: list[int] = []
        for cell in line:
            run = [*run, cell] if run and after[run[-1]] == after[cell] else [cell]
            if len(run) >= 3:
                hit.update(run)
    return len(hit)
