"""Looks under the cards: it opens the pairs one after the other."""

from __future__ import annotations

from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    cards, found, shown = look.state["cards"], look.state["found"], look.state["open"]
    if len(shown) == 1:
        index = next(n for n, card in enumerate(cards) if card == cards[shown[0]] and n != shown[0])
        return f"The other {cards[index]} is card {index + 1}.", look.click(f"card-{index}")
    index = next(n for n in range(len(cards)) if not found[n])
    return f"I turn card {index + 1}.", look.click(f"card-{index}")
