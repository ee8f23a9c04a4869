"""Hybrid training, GUI and GUI-SDK together, against GUI alone: `python -m experiments.hybrid`.

Both have the same number of episodes. The hybrid run plays every second group with a shell that greps
the screen's elements; both are measured on pure GUI tasks. The desktop tasks of sandbox/families/hybrid
are beyond an actor of this size, so six MiniWoB++ tasks play their part (tasks.WHOLE.tooled).
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from experiments import ppo
from experiments.arena import Arena, open_arena
from experiments.measure import Result, measure
from experiments.start import Start
from experiments.state import ROOT, Cell, cell, markdown, over_seeds, percent
from experiments.tasks import Variant
from training.runs.rundir import RunDir

MIXES: dict[str, tuple[Variant, ...]] = {"gui only": ("gui",), "hybrid": ("gui", "sdk")}


def make(arena: Arena, start: Start, mix: str, seed: int, budget: ppo.Budget) -> Cell:
    """Train on one mix of interfaces with one seed; says how good it is with either."""
    base, here = start.ready(arena), start.root / "hybrid"
    name = mix.replace(" ", "-")
    judge = ppo.critic(arena, here / f"critic-{name}", base, budget, start.suite.tooled, MIXES[mix])
    folder = here / f"{name}-{seed}"
    policy = ppo.trained(
        arena, folder, base, seed=seed, budget=budget, tasks=start.suite.tooled, variants=MIXES[mix],
        judge=judge,
    )  # fmt: skip
    return measured(arena, start, policy, budget) | {"curve": ppo.metrics(RunDir(folder))}


def measured(arena: Arena, start: Start, policy: Path, budget: ppo.Budget) -> Cell:
    """Return success with the screen alone and with the shell."""
    tasks, seeds = start.suite.tooled, budget.seeds
    return {
        "gui": measure(arena, policy, tasks, seeds=seeds).as_dict(),
        "sdk": measure(arena, policy, tasks, seeds=seeds, variant="sdk").as_dict(),
    }


def table(first: Cell, cells: dict[str, list[Cell]]) -> str:
    rows = []
    for name, found in {"the start": [first], **cells}.items():
        gui = [Result.of(one["gui"]) for one in found]
        sdk = [Result.of(one["sdk"]) for one in found]
        explained = [line["explained_variance"] for one in found for line in one.get("curve", ())
                     if "explained_variance" in line]  # fmt: skip
        rows.append([
            name,
            over_seeds([one.rate() for one in gui]),
            percent([s for one in gui for s in one.solved()]),
            percent([s for one in sdk for s in one.solved()]),
            f"{sum(explained) / len(explained):.2f}" if explained else "",
        ])  # fmt: skip
    head = [
        "trained on", "GUI success % over seeds", "over episodes", "with the shell %",
        "explained variance, mean",
    ]  # fmt: skip
    return markdown(head, rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.hybrid")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    start = Start(options.root, quick=options.quick)
    budget = ppo.QUICK if options.quick else dataclasses.replace(ppo.Budget(), updates=9)
    here = start.root / "hybrid"
    with open_arena(start.root / "arena") as arena:
        first = cell(
            here / "start.json", lambda: measured(arena, start, start.ready(arena), budget)
        )
        cells: dict[str, list[Cell]] = {mix: [] for mix in MIXES}
        for seed in range(options.seeds):
            for mix in MIXES:
                path = here / f"{mix.replace(' ', '-')}-{seed}.json"
                cells[mix].append(
                    cell(path, lambda mix=mix, seed=seed: make(arena, start, mix, seed, budget))  # type: ignore[misc]
                )
    print(table(first, cells))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
