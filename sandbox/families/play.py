"""One episode of a task by its oracle or at random: for checks and demonstrations, without a policy."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from sandbox.families.protocol import NoWay, TaskFamily, TaskSpec
from sandbox.provider import ActionFailed, Desktop
from sandbox.verdict import Verdict
from trajectory import (
    Action,
    Actor,
    Click,
    Drag,
    Fail,
    Finish,
    Hotkey,
    Observation,
    Scroll,
    Step,
    Type,
    Wait,
    is_terminal,
)

Player: TypeAlias = Callable[[Desktop, Sequence[Step]], tuple[str, Action]]
"""(desktop, steps so far) -> (thought, action); may raise NoWay."""

WORDS = ("a", "7", "12", "hello", "Submit", "London", "x y", "2016")
KEYS = ("enter", "tab", "down", "up", "left", "right", "backspace", "space", "escape")


class Result(NamedTuple):
    """What an episode came to; `no_way` is what the oracle said where it could not go on."""

    verdict: Verdict
    steps: int
    no_way: str = ""


def play(desktop: Desktop, family: TaskFamily, task: TaskSpec, seed: int, player: Player) -> Result:
    """Play to the end of the task, of the player, or of the steps; raises what the desktop raises."""
    epoch = int(str(desktop.health()["epoch"]))
    family.setup(desktop, task, seed, epoch=epoch)
    advance = getattr(family, "advance", None)
    steps: list[Step] = []
    verdict = family.verify(desktop, task, seed)
    while not verdict.done and len(steps) < task.max_steps:
        frame = desktop.observe(elements=True)
        seen = Observation(
            hashlib.sha256(frame.png).hexdigest(), frame.width, frame.height, frame.elements
        )
        try:
            thought, action = player(desktop, steps)
        except NoWay as error:
            return Result(verdict, len(steps), str(error) or "it does not say why")
        steps.append(Step(len(steps), seen, thought, action, actor=Actor.ORACLE))
        answer = action.answer if isinstance(action, Finish) else ""
        if is_terminal(action):
            gave_up = isinstance(action, Fail)
            verdict = family.verify(desktop, task, seed, answer=answer, gave_up=gave_up)
            break
        try:
            desktop.perform(action, epoch=epoch, action_id=uuid.uuid4().hex)
        except ActionFailed:
            pass  # a player may try what can't be done here; it sees that nothing happened
        if advance is not None:
            advance(desktop, task)
        if not task.at_end:
            verdict = family.verify(desktop, task, seed)
    if task.at_end and not (steps and is_terminal(steps[-1].action)):
        verdict = family.verify(desktop, task, seed)
    return Result(verdict, len(steps))


def oracle_player(family: TaskFamily, task: TaskSpec, seed: int) -> Player | None:
    """Return the family's oracle as a player; None where it has none."""
    oracle = family.oracle(task, seed)
    return oracle.decide if oracle else None


def random_player(task: TaskSpec, seed: int) -> Player:
    """Return a player that does anything anywhere: the same for the same task and seed."""
    rng = random.Random(f"random/{task.id}/{seed}")

    def place() -> tuple[int, int]:
        return rng.randrange(task.width), rng.randrange(task.height)

    def decide(desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        kind = rng.random()
        if kind < 0.65:
            action: Action = Click(*place(), count=2 if rng.random() < 0.1 else 1)
        elif kind < 0.75:
            action = Type(rng.choice(WORDS))
        elif kind < 0.85:
            action = Hotkey((rng.choice(KEYS),))
        elif kind < 0.92:
            action = Drag((place(), place()))
        elif kind < 0.97:
            action = Scroll(*place(), dy=rng.choice((-2, 2)))
        else:
            action = Wait(50)
        return "Anything.", action

    return decide
