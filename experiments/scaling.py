"""Inference-time scaling: success against the steps that are allowed: `python -m experiments.scaling`.

The policy is not told the limit, so an episode that was solved within n steps is one that a limit of n
would have left alone: all limits come from the same episodes. After RL: the first full run of
experiments.ppo.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import ppo
from experiments.arena import Arena, open_arena
from experiments.measure import Result, measure
from experiments.start import Start
from experiments.state import ROOT, Cell, cell, markdown, percent

LIMITS = (1, 2, 3, 4, 6, 8, 12, 16, 24)


def make(arena: Arena, start: Start, policy: Path, seeds: int) -> Cell:
    """Play with the largest limit."""
    return measure(arena, policy, start.suite.mendable, seeds=seeds, max_steps=LIMITS[-1]).as_dict()


def table(start: Cell, after: Cell) -> str:
    one, two = Result.of(start), Result.of(after)
    rows = [
        [limit, percent(one.solved(within=limit)), percent(two.solved(within=limit))]
        for limit in LIMITS
    ]
    return markdown(["steps allowed", "before RL %", "after RL %"], rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.scaling")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    start = Start(options.root, quick=options.quick)
    here = start.root / "scaling"
    budget, seeds = (ppo.QUICK, 1) if options.quick else (ppo.Budget(), 40)
    with open_arena(start.root / "arena") as arena:
        base = start.ready(arena)
        judge = ppo.critic(arena, start.root / "ppo" / "critic", base, budget, start.suite.chosen)
        folder = start.root / "ppo" / "full-0"
        policy = ppo.trained(arena, folder, base, seed=0, budget=budget, judge=judge,
            tasks=start.suite.chosen,
        )  # fmt: skip
        first = cell(here / "before.json", lambda: make(arena, start, base, seeds))
        after = cell(here / "after.json", lambda: make(arena, start, policy, seeds))
    print(table(first, after))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
