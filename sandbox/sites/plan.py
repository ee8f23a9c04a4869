"""A way to do a task on a page by names: which link, what into which field, which button.

[{"click": {"role": "link", "name": "New contact"}}, {"fill": {"name": "Phone", "text": "5551"}}, ...]
It is what an oracle follows, and how a made task is proved to be possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.provider import ActionFailed, Desktop
from trajectory import Action, Click, Element, Finish, Hotkey, Step, Type

Plan: TypeAlias = Sequence[dict[str, dict[str, str]]]

APPEARS_S = 4.0


class BadPlan(ValueError):
    """A plan is not of the shape that this module reads; the message names the step."""


@dataclass(frozen=True, slots=True)
class Move:
    """One action of a plan: what is said, on which element, and what is done there."""

    thought: str
    role: str
    name: str
    act: Callable[[Element], Action]


def moves(plan: Plan) -> list[Move]:
    """Return the actions that a plan stands for; raises BadPlan."""
    found: list[Move] = []
    for number, step in enumerate(plan, start=1):
        kind, what = next(iter(step.items()), ("", {}))
        try:
            if len(step) != 1 or kind not in ("click", "fill"):
                raise KeyError("click or fill")
            name = what["name"]
            if kind == "click":
                found.append(Move(f'I click "{name}".', what["role"], name, _centre))
            else:
                found += _fill(name, what["text"])
        except (KeyError, TypeError) as error:
            raise BadPlan(f"step {number}: {error} is missing") from error
    return found


def _centre(element: Element) -> Action:
    return Click(*element.centre)


def _fill(name: str, text: str) -> list[Move]:
    return [
        Move(f'I click the field "{name}".', "textbox", name, _centre),
        Move("I select what is in it.", "textbox", name, lambda _: Hotkey(("ctrl", "a"))),
        Move(f'I type "{text}".', "textbox", name, lambda _: Type(text)),
    ]


class Follower:
    """Follows a plan, one action a step, then finishes with `answer`."""

    def __init__(self, plan: Plan, *, answer: str = "") -> None:
        self._moves, self._answer = moves(plan), answer

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        if len(steps) >= len(self._moves):
            return "All is done, I finish.", Finish(self._answer)
        move = self._moves[len(steps)]
        return move.thought, move.act(find(desktop, move.role, move.name))


def find(desktop: Desktop, role: str, name: str) -> Element:
    """Return the element of that role and name as soon as it is shown; raises NoWay."""
    deadline = time.monotonic() + APPEARS_S
    while True:
        # A click may have begun a navigation: what stands there now may be gone in a moment.
        desktop.settle(quiet_ms=60, max_ms=1000)
        try:
            seen = desktop.observe(elements=True).elements or ()
        except ActionFailed:
            seen = ()
        for element in seen:
            if element.role == role and element.name == name:
                return element
        if time.monotonic() > deadline:
            shown = ", ".join(sorted({e.name for e in seen if e.role == role}))[:200]
            raise NoWay(f"no {role} {name!r} is shown (there are: {shown or 'none'})")
        time.sleep(0.02)
