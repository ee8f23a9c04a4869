"""PPO as UI-TARS-2 describes it, and what each of its parts is worth.

    python -m experiments.ppo --variant full --seeds 3     one variant
    python -m experiments.ppo                              all of them, then both tables

All variants begin with the same policy and have the same budget of episodes. One critic is pretrained
for all seeds of all variants that have one, on episodes of the start.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import runs, stream
from experiments.arena import Arena, open_arena
from experiments.measure import Result, measure
from experiments.start import Start
from experiments.state import ROOT, Cell, cell, gain, markdown, over_seeds, percent
from experiments.tasks import Suite, Variant, endless
from training.data.stream_rows import append
from training.runs.rundir import RunDir
from training.weights.fingerprint import files_of, fingerprint

ALPHA = 0.5
"""Of the length-adaptive lambda. An episode here has 10 to 60 tokens: VAPO's 0.05 would give lambda 0."""

VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "no-value-pretraining": {"any_critic": "yes"},
    "single-lambda": {"lambda_policy": 0.95, "lambda_critic": 0.95},
    "fixed-lambda": {"lambda_policy": 0.95},
    "symmetric-clip": {"clip_high": 0.2},
    "grpo": {"advantage": "grpo", "positive_lm": 0.0},
}


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a run may cost: the same for all variants of a table."""

    updates: int = 12
    batch: int = 128
    group: int = 4
    staleness: int = 1
    value_episodes: int = 2048
    value_steps: int = 150
    seeds: int = 20
    minibatches: int = 4
    rate: float = 3e-4
    critic_rate: float = 5e-4
    least: float = 0.05
    """Explained variance that the critic must have."""


QUICK = Budget(updates=2, batch=8, group=2, value_episodes=32, value_steps=5, seeds=2, least=-1.0)


def critic(
    arena: Arena,
    folder: Path,
    base: Path,
    budget: Budget,
    tasks: Sequence[str],
    variants: Sequence[Variant] = ("gui",),
) -> Path:
    """Return a critic of `base` on `tasks`, pretrained on its own episodes; made once."""
    run = RunDir(folder)
    if run.status().state == "succeeded":
        return runs.newest(run)
    shutil.rmtree(folder, ignore_errors=True)
    config = {
        "steps": budget.value_steps, "learning_rate": budget.critic_rate, "warmup_steps": 2,
        "batch_size": 32,
    }  # fmt: skip
    actor = fingerprint(files_of(base))
    run = runs.prepared("value", folder, base=base, config=config, actor=actor)
    arena.load(base)
    wanted = itertools.islice(
        endless(tasks, seed=99, repeats=1, variants=variants), budget.value_episodes
    )
    played = enumerate(arena.sample(wanted, seed=99), start=1)
    append(folder, (stream.tokens(e, number=n, staleness=0) for n, e in played), end=True)
    return runs.finished("value", run)


def trained(
    arena: Arena,
    folder: Path,
    base: Path,
    *,
    variant: str = "full",
    seed: int,
    budget: Budget,
    tasks: Sequence[str],
    variants: Sequence[Variant] = ("gui",),
    judge: Path | None = None,
) -> Path:
    """Return the policy that a variant of PPO made of `base`; `judge` is its critic, if it has one."""
    run = RunDir(folder)
    if run.status().state == "succeeded":
        return runs.newest(run)
    shutil.rmtree(folder, ignore_errors=True)
    config = {
        "updates": budget.updates, "batch": budget.batch, "group": budget.group,
        "staleness": budget.staleness, "learning_rate": budget.rate,
        "critic_learning_rate": budget.critic_rate, "minibatches": budget.minibatches,
        "alpha": ALPHA, "warmup_steps": 2, "seed": seed, "min_explained_variance": budget.least, **VARIANTS[variant],
    }  # fmt: skip
    where = str(judge.absolute()) if judge is not None and needs_critic(variant) else ""
    actor = fingerprint(files_of(base))
    run = runs.prepared("ppo", folder, base=base, config=config, critic=where, actor=actor)
    return stream.train(
        arena,
        run,
        base=base,
        cases=endless(tasks, seed=seed, repeats=budget.group, variants=variants),
        batch=budget.batch,
        staleness=budget.staleness,
        seed=seed,
    )


def needs_critic(variant: str) -> bool:
    return variant not in ("no-value-pretraining", "grpo")


def make(arena: Arena, start: Start, variant: str, seed: int, budget: Budget) -> Cell:
    """Train one variant with one seed and say how good it became."""
    base, here = start.ready(arena), start.root / "ppo"
    judge = (
        critic(arena, here / "critic", base, budget, start.suite.chosen)
        if needs_critic(variant)
        else None
    )
    begun = time.monotonic()
    folder = here / f"{variant}-{seed}"
    policy = trained(
        arena, folder, base, variant=variant, seed=seed, budget=budget, judge=judge,
        tasks=start.suite.chosen,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    curve = metrics(RunDir(folder))
    return {
        "chosen": measure(arena, policy, start.suite.chosen, seeds=budget.seeds).as_dict(),
        "rest": measure(arena, policy, start.suite.rest, seeds=budget.seeds).as_dict(),
        "seconds": seconds,
        "curve": curve,
    }


def before(arena: Arena, start: Start, budget: Budget) -> Cell:
    """Say how good the start is, with the same dice."""
    base = start.ready(arena)
    return {
        "chosen": measure(arena, base, start.suite.chosen, seeds=budget.seeds).as_dict(),
        "rest": measure(arena, base, start.suite.rest, seeds=budget.seeds).as_dict(),
    }


def metrics(run: RunDir) -> list[dict[str, float]]:
    """Return what a trainer said of each of its updates."""
    path = run.path / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def compared(start: Cell, cells: dict[str, list[Cell]]) -> str:
    """Return one row per variant: success over seeds and over episodes, and the rest."""
    rows = []
    first = Result.of(start["chosen"])
    rest = Result.of(start["rest"])
    rows.append(
        ["the start", over_seeds([first.rate()]), percent(first.solved()), "",
         percent(rest.solved()), ""]
    )  # fmt: skip
    for name, found in cells.items():
        chosen = [Result.of(one["chosen"]) for one in found]
        others = [Result.of(one["rest"]) for one in found]
        rows.append([
            name,
            over_seeds([one.rate() for one in chosen]),
            percent([s for one in chosen for s in one.solved()]),
            gain(*_paired(first, chosen)),
            percent([s for one in others for s in one.solved()]),
            gain(*_paired(rest, others)),
        ])  # fmt: skip
    head = [
        "variant", "success % over seeds", "over episodes", "gain, points", "the rest %",
        "change of the rest, points",
    ]  # fmt: skip
    return markdown(head, rows)


def per_task(suite: Suite, start: Cell, found: list[Cell]) -> str:
    """Return success per task before and after; all seeds of the variant together."""
    rows = []
    for part, tasks in (("chosen", suite.chosen), ("rest", suite.rest)):
        first = Result.of(start[part])
        after = [Result.of(one[part]) for one in found]
        for task in tasks:
            solved = [s for one in after for s in one.solved([task])]
            rows.append([
                task, part, percent(first.solved([task])), percent(solved),
                gain(*_paired(first, after, [task])),
            ])  # fmt: skip
    return markdown(["task", "set", "before %", "after %", "gain, points"], rows)


def _paired(
    first: Result, after: list[Result], tasks: Sequence[str] | None = None
) -> tuple[list[float], list[float]]:
    """Return success before and after of each task and seed, the latter as the mean of all runs."""
    before = [float(solved) for solved in first.solved(tasks)]
    each = [one.solved(tasks) for one in after]
    return before, [sum(solved) / len(each) for solved in zip(*each, strict=True)]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.ppo")
    parser.add_argument("--variant", choices=VARIANTS, help="only this one")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    start = Start(options.root, quick=options.quick)
    budget = QUICK if options.quick else Budget()
    here = start.root / "ppo"
    names = [options.variant] if options.variant else list(VARIANTS)
    with open_arena(start.root / "arena") as arena:
        first = cell(here / "start.json", lambda: before(arena, start, budget))
        cells: dict[str, list[Cell]] = {name: [] for name in names}
        for seed, name in itertools.product(range(options.seeds), names):
            cells[name].append(
                cell(
                    here / f"{name}-{seed}.json",
                    lambda name=name, seed=seed: make(arena, start, name, seed, budget),  # type: ignore[misc]
                )
            )
    print(compared(first, cells))
    if "full" in cells:
        print()
        print(per_task(start.suite, first, cells["full"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
