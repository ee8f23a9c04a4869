"""Play games by their oracles and by chance, and say what both are worth: where references come from.

    python -m benchmarks.games [game ...] [--seeds 30] [--chance-only] [--sheet docs/images/games.png]

Chance presses, drags and taps at uniform places; in games with arrow keys three of five actions are
arrow keys. `--sheet` also writes one picture with every game as it is after a few moves.
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import tempfile
import uuid
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from sandbox.families.games import FAMILY
from sandbox.families.protocol import TaskSpec
from sandbox.games.manifest import games
from sandbox.providers.browser import Fleet, PageSpec
from sandbox.providers.browser.page import BrowserPage
from sandbox.verdict import Verdict
from trajectory import Action, Click, Drag, Finish, Hotkey

THUMB = (180, 240)
A_ROW = 6
SHOWN_AFTER, SHOWN_AFTER_LONG = 2, 12
ARROWS = ("up", "down", "left", "right")


class Played(NamedTuple):
    verdict: Verdict
    steps: int


def act(page: BrowserPage, task: TaskSpec, action: Action) -> None:
    page.perform(action, epoch=1, action_id=uuid.uuid4().hex)
    FAMILY.advance(page, task)


def by_oracle(page: BrowserPage, task: TaskSpec, seed: int, *, most: int = 0) -> Played:
    FAMILY.setup(page, task, seed, epoch=1)
    oracle = FAMILY.oracle(task, seed)
    assert oracle is not None
    steps = 0
    while steps < (most or task.max_steps):
        _, action = oracle.decide(page, ())
        if isinstance(action, Finish):
            break
        act(page, task, action)
        steps += 1
    return Played(FAMILY.verify(page, task, seed), steps)


def by_chance(page: BrowserPage, task: TaskSpec, seed: int) -> Played:
    FAMILY.setup(page, task, seed, epoch=1)
    chance = random.Random(seed)
    verdict, steps = FAMILY.verify(page, task, seed), 0
    while steps < task.max_steps and not verdict.done:
        act(page, task, any_action(task, chance))
        verdict = FAMILY.verify(page, task, seed)
        steps += 1
    return Played(verdict, steps)


def any_action(task: TaskSpec, chance: random.Random) -> Action:
    def place() -> tuple[int, int]:
        return chance.randrange(task.width), chance.randrange(task.height)

    draw = chance.random()
    if "keys" in task.tags and draw < 0.6:
        return Hotkey((chance.choice(ARROWS),))
    if "drag" in task.tags and draw < 0.8:
        return Drag((place(), place()))
    return Click(*place())


def line(who: str, task: TaskSpec, played: list[Played]) -> str:
    rewards = [p.verdict.reward or 0.0 for p in played]
    scores = [p.verdict.score or 0.0 for p in played]
    steps = [p.steps for p in played]
    return (
        f"{task.name:20} {who:7} {len(played):3} seeds  reward {statistics.mean(rewards):.3f}"
        f"  at reward 1 {sum(r >= 1 for r in rewards):3}  score mean {statistics.mean(scores):.1f}"
        f" median {statistics.median(scores):g} min {min(scores):g} max {max(scores):g}"
        f"  steps mean {statistics.mean(steps):.1f} max {max(steps)}"
    )


def sheet(pictures: list[bytes], path: Path) -> None:
    """Write one picture of all."""
    rows = -(-len(pictures) // A_ROW)
    out = Image.new("RGB", (A_ROW * THUMB[0], rows * THUMB[1]), "#f7f5f0")
    for n, png in enumerate(pictures):
        small = Image.open(io.BytesIO(png)).convert("RGB").resize(THUMB, Image.Resampling.LANCZOS)
        out.paste(small, (n % A_ROW * THUMB[0], n // A_ROW * THUMB[1]))
    out.save(path, optimize=True)


def main() -> None:
    ours = {game.name for game in games() if "third_party" not in game.folder.parts}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("games", nargs="*", help="names; all of our own if none is given")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--chance-only", action="store_true")
    parser.add_argument("--sheet", type=Path)
    options = parser.parse_args()
    wanted = set(options.games) or ours
    tasks = [task for task in FAMILY.list() if task.name in wanted]
    pictures = []
    with Fleet(browsers=1, state=Path(tempfile.mkdtemp(prefix="tandem-games-"))) as fleet:
        for task in tasks:
            size = {"width": task.width, "height": task.height}
            page = fleet.open(PageSpec(**size, clock=True, origins=task.origins))
            page.fence(1)
            if options.sheet:
                if not task.name.endswith("-easy"):
                    long = task.timed or (task.reference and task.max_steps > 40)
                    most = SHOWN_AFTER_LONG if long else SHOWN_AFTER
                    by_oracle(page, task, 0, most=most)
                    pictures.append(page.observe().png)
            else:
                if not options.chance_only:
                    played = [by_oracle(page, task, seed) for seed in range(options.seeds)]
                    print(line("oracle", task, played), flush=True)
                played = [by_chance(page, task, seed) for seed in range(options.seeds)]
                print(line("chance", task, played), flush=True)
            page.close()
    if options.sheet:
        sheet(pictures, options.sheet)


if __name__ == "__main__":
    main()
