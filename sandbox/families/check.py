"""Play the tasks of a family with its oracles, or at random, and print who reached what.

    python -m sandbox.families.check --family miniwob --seeds 0:5
    python -m sandbox.families.check --family miniwob --seeds 0:5 --random --json random.json

A page family is played in headless pages of this host. A task whose page broke counts as broken and not
as a reward of 0, after one more try in a fresh page. A seed for which the oracle says that there is no
way is counted as such.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox.families import NAMES, TaskFamily, TaskSpec, find, load
from sandbox.families.play import Result, oracle_player, play, random_player
from sandbox.provider import SandboxError
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec


@dataclass(slots=True)
class Score:
    """What became of one task's episodes: `rewards` of those that could be judged."""

    rewards: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    no_way: list[int] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def solved(self) -> int:
        return sum(reward >= 1 for reward in self.rewards)


def check(
    family: TaskFamily, tasks: Sequence[TaskSpec], seeds: Sequence[int], *, at_random: bool = False
) -> dict[str, Score]:
    """Play every task and seed and return each task's score; one line per task is printed."""
    scores: dict[str, Score] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as state:
        with Fleet(browsers=1, state=Path(state)) as fleet:
            for task in tasks:
                if not at_random and family.oracle(task, 0) is None:
                    scores[task.name] = Score()
                    print(f"{task.name:32} no oracle", flush=True)
                    continue
                score = _score(fleet, family, task, seeds, at_random)
                scores[task.name] = score
                print(_line(task.name, score, len(seeds)), flush=True)
    return scores


def _score(
    fleet: Fleet, family: TaskFamily, task: TaskSpec, seeds: Sequence[int], at_random: bool
) -> Score:
    """Play one task on one page; a page that broke is replaced, and its episode tried once more."""
    score = Score()
    begun = time.monotonic()
    page: BrowserPage | None = None
    for seed in seeds:
        for attempt in (1, 2):
            player = random_player(task, seed) if at_random else oracle_player(family, task, seed)
            if player is None:
                break
            try:
                page = page or fleet.open(page_spec(task, seeds[0]))
                _count(score, seed, play(page, family, task, seed, player))
                break
            except SandboxError as error:
                score.causes.append(f"seed {seed}: {type(error).__name__}: {error}")
                _close(page)
                page = None
                if attempt == 2:
                    score.broken.append(seed)
    _close(page)
    score.seconds = time.monotonic() - begun
    return score


def _count(score: Score, seed: int, result: Result) -> None:
    if result.no_way:
        score.no_way.append(seed)
        score.causes.append(f"seed {seed}: no way: {result.no_way}")
    elif result.verdict.reward is None:
        score.broken.append(seed)
        score.causes.append(f"seed {seed}: {result.verdict.detail}")
    else:
        score.rewards.append(result.verdict.reward)
        score.steps.append(result.steps)
        if result.verdict.reward < 1:
            score.causes.append(f"seed {seed}: {result.verdict.detail}, {result.steps} steps")


def page_spec(task: TaskSpec, seed: int) -> PageSpec:
    """Return the page that `task` is played in."""
    return PageSpec(
        width=task.width, height=task.height, clock=task.timed, seed=seed, origins=task.origins
    )


def _close(page: BrowserPage | None) -> None:
    try:
        if page is not None:
            page.close()
    except SandboxError as error:
        print(f"closing: {error}", file=sys.stderr)


def _line(name: str, score: Score, seeds: int) -> str:
    rewards = score.rewards
    mean = f"{sum(rewards) / len(rewards):.3f}" if rewards else "  -  "
    notes = "; ".join(score.causes[:2])
    return (
        f"{name:32} solved {score.solved}/{seeds}  mean {mean}  no way {len(score.no_way)}  "
        f"broken {len(score.broken)}  {score.seconds:.1f} s  {notes}"
    ).rstrip()


def totals(scores: dict[str, Score]) -> dict[str, float]:
    """Return the sums over all tasks that were played."""
    rewards = [reward for score in scores.values() for reward in score.rewards]
    played = [score for score in scores.values() if score.rewards or score.no_way or score.broken]
    return {
        "tasks": len(scores),
        "tasks played": len(played),
        "tasks solved on every seed": sum(
            bool(s.rewards) and s.solved == len(s.rewards) + len(s.no_way) + len(s.broken)
            for s in played
        ),
        "episodes judged": len(rewards),
        "episodes solved": sum(reward >= 1 for reward in rewards),
        "episodes without a way": sum(len(score.no_way) for score in played),
        "episodes broken": sum(len(score.broken) for score in played),
        "mean reward": round(sum(rewards) / len(rewards), 4) if rewards else 0.0,
        "mean reward by task": round(
            sum(sum(s.rewards) / len(s.rewards) for s in played if s.rewards)
            / max(1, sum(bool(s.rewards) for s in played)), 4,
        ),
    }  # fmt: skip


def seeds_of(text: str) -> range:
    """Read "A:B" as the seeds from A up to but not including B."""
    first, _, end = text.partition(":")
    return range(int(first), int(end)) if end else range(int(first), int(first) + 1)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.families.check")
    parser.add_argument("--family", choices=NAMES, required=True)
    parser.add_argument("--tasks", default="", help="names, by commas; all without")
    parser.add_argument("--seeds", type=seeds_of, default=range(0, 2), help="A:B, B not included")
    parser.add_argument("--random", action="store_true", help="clicks, keys and text at random")
    parser.add_argument("--json", type=Path, help="where to write the scores")
    options = parser.parse_args(argv)
    family = load(options.family)
    tasks = [find(family, name) for name in options.tasks.split(",") if name] or family.list()
    pages = [task for task in tasks if task.surface == "page"]
    if not pages:
        parser.error(f"no task of {options.family} runs in a page: play them on a desktop")
    scores = check(family, pages, list(options.seeds), at_random=options.random)
    sums = totals(scores)
    for name, value in sums.items():
        print(f"{name}: {value}")
    if options.json:
        found = {"totals": sums, "tasks": {name: asdict(s) for name, s in scores.items()}}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
