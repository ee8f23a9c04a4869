"""What an oracle of a game sees, and how it is found.

`oracle.py` of a game has one function, `decide(look: Look) -> Decision`. It decides on the state as it
is and remembers nothing, so that it can go on from wherever a policy has brought the game.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.games.manifest import Game
from sandbox.provider import Desktop
from trajectory import Action, Click, Drag, Finish, Point, Step

Decision: TypeAlias = tuple[str, Action]

_LOOK = """(() => window.tandemGame
  ? {state: tandemGame.state(), at: tandemGame.places(), judged: (VERIFIER)(tandemGame.state())}
  : null)()"""


class Look(NamedTuple):
    """One game as it is now: `state` is the page's, `at` the middle of each place in pixels."""

    state: Mapping[str, Any]
    at: Mapping[str, Point]
    steps: Sequence[Step]

    def click(self, place: str) -> Click:
        x, y = self._point(place)
        return Click(x, y)

    def drag(self, start: str, end: str) -> Drag:
        return Drag((self._point(start), self._point(end)))

    def _point(self, place: str) -> Point:
        if place not in self.at:
            raise NoWay(f"the page has no place {place!r}")
        x, y = self.at[place]
        return round(x), round(y)


class Player(NamedTuple):
    """The oracle of one game."""

    game: Game

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> Decision:
        """Return what `decide` of the game says; Finish when the game is over."""
        found = desktop.evaluate(_LOOK.replace("VERIFIER", f"\n{self.game.verifier}\n"))
        if not isinstance(found, Mapping):
            raise NoWay("the page in front is not the game any more")
        if found["judged"]["done"]:
            return "The game is over.", Finish()
        decide: Callable[[Look], Decision] = import_module(self.game.module).decide
        return decide(Look(found["state"], found["at"], steps))
