"""Pages that answer back or move: a board game, a hunt, a market, a shop."""

from __future__ import annotations

import math
import re
from typing import Any

from sandbox.families.miniwob.sight import Decision, Script, Sight, quote
from sandbox.families.protocol import NoWay

# The page draws its moves from the seeded generator and nothing else does: this plays all of our
# moves against all of its coming ones and gives the first move of the shortest game that is won.
_WIN = """((seed, ours) => {
  const rng = new Math.seedrandom(seed), drawn = [];
  const at = (n) => { while (drawn.length <= n) drawn.push(rng()); return drawn[n]; };
  const saved = [gameState, freeSpaces];
  const reply = (state, free, n) => {
    let space;
    if (Math.floor(at(n++) * 100) < RANDOM_CHANCE || free.length === 9)
      space = free[Math.floor(at(n++) * free.length)];
    else {
      gameState = state;
      space = determineSpace(-1, 1);
      if (space === undefined || space === false) space = free[Math.floor(at(n++) * free.length)];
    }
    const next = state.slice();
    next[space] = -1;
    return [next, free.filter((s) => s !== space), n];
  };
  const won = (state, who) => { gameState = state; return checkWinner(who); };
  const move = (state, free, n, space) => {
    const mine = state.slice();
    mine[space] = 1;
    const left = free.filter((s) => s !== space);
    if (won(mine, 1)) return true;
    if (!left.length) return null;
    const [next, rest, m] = reply(mine, left, n);
    return won(next, -1) || !rest.length ? null : [next, rest, m];
  };
  const search = (state, free, n, depth) => {
    for (const space of free) {
      const after = move(state, free, n, space);
      if (after === true) return space;
      if (after && depth > 1 && search(...after, depth - 1) !== null) return space;
    }
    return null;
  };
  try {
    let game = [INITIAL_GAME_STATE.slice(), EMPTY_SPACES.slice(), 0];
    if (Math.floor(at(game[2]++) * 100) > 50) game = reply(...game);
    for (const space of ours) game = move(...game, space);
    for (let depth = 1; depth <= 5; depth++) {
      const found = search(...game, depth);
      if (found !== null) return found;
    }
    return null;
  } finally { [gameState, freeSpaces] = saved; }
})"""


def _tic_tac_toe(sight: Sight) -> Decision:
    ours = sight.memory.setdefault("ours", [])
    for index in sight.js("all('.ttt-row .mark-x').map(e => +e.dataset.index)"):
        if index not in ours:
            ours.append(index)
    move = sight.js(f"{_WIN}({quote(str(sight.seed))}, {ours})")
    if move is None:
        raise NoWay("this game can't be won")
    return sight.click(f"I take field {move + 1}.", f"one('#ttt-{move}')")


_SIGNALS = (("HOT", 0.0, 5.0), ("WARM", 5.0, 10.0), ("COLD", 10.0, 40.0), ("ICE COLD", 40.0, 1e9))


def _hot_cold(sight: Sight) -> Decision:
    """Point here and there; what the signal rules out is not looked at again."""
    left: list[tuple[int, int]] = sight.memory.setdefault(
        "left", [(x, y) for x in range(5, 155) for y in range(5, 120)]
    )
    last = sight.memory.get("last")
    if last is not None:
        signal = str(sight.js("words(one('#display'))"))
        near, far = next(((low, high) for name, low, high in _SIGNALS if name == signal), (0, 1e9))
        left = [p for p in left if near <= math.dist(p, last) < far]
        sight.memory["left"] = left
        if signal == "HOT":
            return sight.tap("Here it is hot, I click.", (last[0], last[1] + 50))
    if not left:
        raise NoWay("it is hot nowhere")
    middle = (sum(x for x, _ in left) / len(left), sum(y for _, y in left) / len(left))
    goal = min(left, key=lambda p: math.dist(p, middle))
    sight.memory["last"] = goal
    return sight.move("I look how warm it is here.", (goal[0], goal[1] + 50))


def _stock(sight: Sight) -> Decision:
    """Wait for a price that stays low enough even if it moves once more before the click."""
    match = re.search(r"less than \$(\d+\.\d+)", sight.said)
    limit = float(match.group(1)) if match else 0.0
    price, ticks = sight.js(
        "[parseFloat(words(one('#stock-price')).slice(1)), all('.plot-point').length]"
    )
    margin = 1.5 if ticks < 60 else 0.4
    if price is not None and ticks and price <= limit - margin:
        return sight.click(f"${price:.2f} is low enough, I buy.", "one('#buy')")
    if ticks > 97:
        raise NoWay("the price did not fall in time")
    return sight.wait(f"The price has to fall below ${limit:.2f}, I wait.", 50)


def _ticket(sight: Sight) -> Decision:
    match = re.search(r"with the (.+)\.", sight.said)
    asked = match.group(1) if match else ""
    tickets: Any = sight.js(
        "all('.flight').map(f => [+f.querySelector('.buy-ticket').dataset.price,"
        " +f.querySelector('.time-duration').dataset.duration])"
    )
    column = 0 if "cost" in asked else 1
    values = [ticket[column] for ticket in tickets]
    best = max(values) if asked.split(" ")[0] in ("longest", "most") else min(values)
    return sight.click(
        f"This one has the {asked}.",
        f"all('.flight')[{values.index(best)}].querySelector('.buy-ticket')",
    )


def _food(sight: Sight) -> Decision:
    wanted = _dishes(sight)
    for index, count in enumerate(sight.js("all('.food-item').map(e => +e.dataset.quantity)")):
        goal = wanted.get(index, 0)
        if count != goal:
            button = "add" if count < goal else "remove"
            name = sight.js(f"MENU[{index}].name.trim()")
            return sight.click(
                f"I {button} {name}.", f"all('.food-item')[{index}].querySelector('.{button}')"
            )
    return sight.click("This is all, I order.", "one('#submit-order button')")


def _dishes(sight: Sight) -> dict[int, int]:
    """Return how many of each dish, by its place on the menu, are asked for."""
    if match := re.fullmatch(r"Order (\d+) items that are (.+)", sight.said):
        kind = match.group(2)
        fits = [i for i, dish in enumerate(sight.js("MENU")) if kind in dish["types"]]
        chosen: dict[int, int] = {}
        for number in range(int(match.group(1))):
            dish = fits[number % len(fits)]
            chosen[dish] = chosen.get(dish, 0) + 1
        return chosen
    names = sight.js("MENU.map(d => d.name.trim())")
    asked = sight.said.removeprefix("Order one of each item: ").split(", ")
    return {names.index(name.strip()): 1 for name in asked}


SCRIPTS: dict[str, Script] = {
    "tic-tac-toe": _tic_tac_toe,
    "hot-cold": _hot_cold,
    "stock-market": _stock,
    "buy-ticket": _ticket,
    "order-food": _food,
}
