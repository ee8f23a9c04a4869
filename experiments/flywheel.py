"""The data flywheel: `python -m experiments.flywheel`.

Each iteration plays the tasks with the model of the iteration before (rejection sampling), gives every
episode its V(s), puts V(s) = 1 into the SFT set and V(s) = 0 into the CT set, and trains the next
model: CT of the shared base on every CT_EVERY-th iteration, then SFT from that base on all that the SFT
set holds. The first model has seen only the oracles' few demonstrations.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments import runs
from experiments.arena import Arena, Episode, open_arena
from experiments.measure import Result, measure
from experiments.start import Start
from experiments.state import ROOT, Cell, cell, markdown, over_seeds, percent
from experiments.tasks import ROLLOUTS, cases
from training.data.flywheel import route_episode
from training.data.rows import Row
from training.data.sampling import Success, surplus
from training.data.texts import texts
from trajectory import Trajectory, dump_lines, load_lines

CT_EVERY = 2
PER_SEED = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an iteration may cost."""

    iterations: int = 3
    seeds: int = 16
    repeats: int = 4
    epochs: float = 3
    measured: int = 20


QUICK = Budget(iterations=1, seeds=1, repeats=2, epochs=0.1, measured=1)


@dataclass(slots=True)
class Pools:
    """What the flywheel has gathered."""

    sft: list[Trajectory] = field(default_factory=list)
    ct: list[Trajectory] = field(default_factory=list)


def sort(episodes: Sequence[Episode], pools: Pools) -> float:
    """Put finished episodes where their V(s) sends them; returns the share of V(s) = 1."""
    values = [
        route_episode(
            state="done",
            outcome=e.trajectory.outcome.value if e.trajectory.outcome else "",
            reward=e.reward,
        ).value
        for e in episodes
    ]
    good = [
        Success(n, e.case.task, e.case.seed, len(e.trajectory.steps))
        for n, (e, value) in enumerate(zip(episodes, values, strict=True))
        if value == 1
    ]
    spare = surplus(good, per_seed=PER_SEED)
    for n, (episode, value) in enumerate(zip(episodes, values, strict=True)):
        # Nothing is wasted: successes beyond what is needed still tell how screens answer.
        (pools.sft if value == 1 and n not in spare else pools.ct).append(episode.trajectory)
    return sum(value == 1 for value in values) / len(values)


def iterate(arena: Arena, start: Start, here: Path, seed: int, budget: Budget) -> Cell:
    """Run all iterations with one seed; returns what each came to."""
    policy, base = start.ready(arena), start.base
    shown = start.taught(start.demonstrations(arena))
    pools = Pools(sft=list(shown))
    found: list[Cell] = [{"share": None, "sft": len(shown), "ct": 0,
              "result": measure(arena, policy, start.suite.chosen, seeds=budget.measured).as_dict()}]  # fmt: skip
    for number in range(1, budget.iterations + 1):
        folder = here / f"{seed}-{number}"
        share = sort(_rollouts(arena, start, folder, policy, seed, number, budget), pools)
        if number % CT_EVERY == 0:
            base = _ct(folder.with_name(f"{folder.name}-ct"), base, pools.ct, seed)
            pools.ct.clear()
        learnt = folder.with_name(f"{folder.name}-sft")
        run = runs.sft(learnt, base, pools.sft, epochs=budget.epochs, seed=seed)
        policy = runs.newest(run)
        found.append({
            "share": share, "sft": len(pools.sft), "ct": len(pools.ct),
            "result": measure(arena, policy, start.suite.chosen, seeds=budget.measured).as_dict(),
        })  # fmt: skip
    return {"iterations": found}


def _rollouts(
    arena: Arena, start: Start, folder: Path, policy: Path, seed: int, number: int, budget: Budget
) -> list[Episode]:
    first = ROLLOUTS + 10_000 * seed + 1000 * number
    wanted = cases(start.suite.chosen, range(first, first + budget.seeds), repeats=budget.repeats)
    path = folder / "episodes.jsonl"
    if not path.exists():
        arena.load(policy)
        played = {e.case.id: e.trajectory for e in arena.sample(wanted, seed=seed)}
        folder.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".unfinished")
        aside.write_text("".join(dump_lines([played[case.id] for case in wanted])), "utf-8")
        aside.rename(path)
    kept = load_lines(path.read_text(encoding="utf-8").splitlines())
    return [Episode(n, c, t) for n, (c, t) in enumerate(zip(wanted, kept, strict=True), start=1)]


def _ct(path: Path, base: Path, trajectories: list[Trajectory], seed: int) -> Path:
    """Continue the base on all text of what is not good enough for SFT."""
    lines = [row.to_line() for row in texts(trajectories, runs.FORM) if isinstance(row, Row)]
    config = {"epochs": 1, "batch_size": 32, "learning_rate": 3e-4, "seed": seed, "warmup_steps": 5}
    return runs.finished("ct", runs.prepared("ct", path, base=base, config=config, lines=lines))


def table(cells: list[Cell]) -> str:
    """Return one row per iteration over all seeds."""
    rows = []
    for number in range(len(cells[0]["iterations"])):
        each = [one["iterations"][number] for one in cells]
        results = [Result.of(one["result"]) for one in each]
        shares = [one["share"] for one in each if one["share"] is not None]
        rows.append([
            f"M{number}" + (" (demonstrations only)" if number == 0 else ""),
            over_seeds(shares) if shares else "",
            round(sum(one["sft"] for one in each) / len(each)),
            over_seeds([result.rate() for result in results]),
            percent([s for result in results for s in result.solved()]),
        ])  # fmt: skip
    head = [
        "model", "share of V(s) = 1 in its data, %", "trajectories for SFT",
        "success % over seeds", "over episodes",
    ]  # fmt: skip
    return markdown(head, rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.flywheel")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    start = Start(options.root, quick=options.quick)
    budget = QUICK if options.quick else Budget()
    here = start.root / "flywheel"
    with open_arena(start.root / "arena") as arena:
        cells = [
            cell(here / f"{seed}.json", lambda seed=seed: iterate(arena, start, here, seed, budget))  # type: ignore[misc]
            for seed in range(options.seeds)
        ]
    print(table(cells))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
