"""Merged specialists against each of them and against joint training: `python -m experiments.merge`.

One specialist per group of tasks, each with its share of the episodes that joint training has; the
merge is their mean (trainers/merge) and costs nothing more.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from experiments import ppo, runs
from experiments.arena import Arena, open_arena
from experiments.measure import Result, measure
from experiments.start import Start
from experiments.state import ROOT, Cell, cell, markdown, over_seeds, percent


def make(arena: Arena, start: Start, seed: int, budget: ppo.Budget) -> Cell:
    """Train the specialists, their merge and the joint model with one seed; measure all."""
    base, here = start.ready(arena), start.root / "merge"
    share = dataclasses.replace(budget, updates=max(1, budget.updates // len(start.suite.groups)))
    policies: dict[str, Path] = {}
    judge = ppo.critic(arena, start.root / "ppo" / "critic", base, budget, start.suite.chosen)
    for group, tasks in start.suite.groups.items():
        policies[f"specialist: {group}"] = ppo.trained(
            arena, here / f"{group.replace(' ', '-')}-{seed}", base, seed=seed, budget=share,
            tasks=tasks, judge=judge,
        )  # fmt: skip
    sources = [
        {"uri": str(path.absolute()), "version": name, "weight": 1 / len(policies)}
        for name, path in policies.items()
    ]
    run = runs.prepared("merge", here / f"merged-{seed}", base=base, config={}, sources=sources)
    policies["merged"] = runs.finished("merge", run)
    policies["joint"] = ppo.trained(
        arena,
        here / f"joint-{seed}",
        base,
        seed=seed,
        budget=budget,
        judge=judge,
        tasks=start.suite.chosen,
    )
    return {
        name: measure(arena, path, start.suite.chosen, seeds=budget.seeds).as_dict()
        for name, path in {"the start": base, **policies}.items()
    }


def table(groups: dict[str, tuple[str, ...]], cells: list[Cell]) -> str:
    rows = []
    names = ["the start", *(f"specialist: {group}" for group in groups), "merged", "joint"]
    for name in names:
        found = [Result.of(one[name]) for one in cells]
        rows.append([
            name,
            *(percent([s for one in found for s in one.solved(tasks)]) for tasks in groups.values()),
            over_seeds([one.rate() for one in found]),
        ])  # fmt: skip
    return markdown(["model", *(f"{group} %" for group in groups), "all % over seeds"], rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.merge")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    start = Start(options.root, quick=options.quick)
    budget = ppo.QUICK if options.quick else dataclasses.replace(ppo.Budget(), updates=9)
    here = start.root / "merge"
    with open_arena(start.root / "arena") as arena:
        cells = [
            cell(here / f"{seed}.json", lambda seed=seed: make(arena, start, seed, budget))  # type: ignore[misc]
            for seed in range(options.seeds)
        ]
    print(table(start.suite.groups, cells))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
