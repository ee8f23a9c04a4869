"""The shared start of all experiments: `python -m experiments.start`.

1. the oracles show every task (demonstrations.jsonl); 2. a base model learns to read made-up screens
(base/); 3. the shipped SFT trainer teaches it the tasks with a few demonstrations (start/). All of it
is made once and kept below var/experiments; the same seed gives the same start.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from experiments import pretrain, tiny
from experiments.arena import Arena, open_arena
from experiments.measure import Result, measure
from experiments.runs import learnable, sft
from experiments.state import ROOT, Cell, cell, markdown, percent
from experiments.tasks import DEMONSTRATIONS, SMOKE, WHOLE, Suite, cases
from training.runs.rundir import RunDir
from trajectory import Trajectory, dump_lines, load_lines

SHOWN, TAUGHT, TOOL_TAUGHT = 40, 12, 6
"""Seeds that the oracles show, and how many of them the start is taught, of each task."""
EPOCHS, SAVE_EVERY = 4, 10
ENOUGH, CHOICE, CHOOSING = 0.4, 5_000, 6
"""Where teaching stops: at this rate, on seeds from CHOICE on, so many of each task."""


class Start:
    """The folders of a start below `root`; `quick` makes one that has learnt next to nothing."""

    def __init__(self, root: Path = ROOT, *, quick: bool = False) -> None:
        self.root = root / "quick" if quick else root
        self.quick = quick
        self.suite = SMOKE if quick else WHOLE
        self.base, self.policy = self.root / "base", self.root / "start"

    def ready(self, arena: Arena) -> Path:
        """Return the checkpoint that all runs begin with, made if it is not there."""
        if (self.policy / "tandem.json").exists():
            return self.policy
        shown = self.demonstrations(arena)
        if not (self.base / "tandem.json").exists():
            self._make_base(shown)
        taught = self.taught(shown)
        epochs = 40 if self.quick else EPOCHS
        path = self.root / "start-run"
        run = sft(path, self.base, taught, epochs=epochs, seed=0, save_every=SAVE_EVERY)
        aside = self.root / "start-unfinished"
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(self._half_taught(arena, run), aside)
        aside.rename(self.policy)
        return self.policy

    def _half_taught(self, arena: Arena, run: RunDir) -> Path:
        """Return the first checkpoint that solves ENOUGH of the chosen tasks, else the last.

        RL can only show something where there is room above and something to reward below.
        """
        rates: dict[int, float] = {}
        for step in run.steps()[: 0 if self.quick else None]:
            found = measure(
                arena, run.checkpoint(step), self.suite.chosen, seeds=CHOOSING, first=CHOICE
            )
            rates[step] = found.rate()
            print(f"start: after {step} steps of SFT {100 * rates[step]:.0f} % of the chosen tasks")
            if rates[step] >= ENOUGH:
                return run.checkpoint(step)
        return run.checkpoint(run.steps()[-1])

    def demonstrations(self, arena: Arena) -> list[Trajectory]:
        """Return what the oracles did on the seeds kept for them, by task and seed."""
        path = self.root / "demonstrations.jsonl"
        if not path.exists():
            seeds = range(DEMONSTRATIONS, DEMONSTRATIONS + (2 if self.quick else SHOWN))
            wanted = cases(self.suite.tasks, seeds)
            wanted += cases(self.suite.tooled, seeds, variant="sdk")
            shown = [e.trajectory for e in arena.demonstrate(wanted) if e.solved]
            shown.sort(key=lambda t: t.id)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(dump_lines(shown)), encoding="utf-8")
        return list(load_lines(path.read_text(encoding="utf-8").splitlines()))

    def taught(self, shown: list[Trajectory]) -> list[Trajectory]:
        """Return the demonstrations that the start is taught."""
        most = {"gui": TAUGHT, "sdk": TOOL_TAUGHT}
        return [t for t in shown if int(t.metadata["seed"]) < most[t.metadata["variant"]]]

    def _make_base(self, shown: list[Trajectory]) -> None:
        texts = [
            text for row in learnable(shown) for text in (row.messages[-1]["content"], row.target)
        ]
        aside = self.root / "base-unfinished"
        shutil.rmtree(aside, ignore_errors=True)
        made = pretrain.texts(-1, 200 if self.quick else 3000)
        tiny.make(aside, [*texts, *made])
        pretrain.pretrain(aside, steps=2 if self.quick else pretrain.STEPS)
        shutil.rmtree(self.base, ignore_errors=True)
        aside.rename(self.base)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.start", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run, in seconds")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    start = Start(options.root, quick=options.quick)
    seeds = 2 if options.quick else 40
    with open_arena(start.root / "arena") as arena:
        begun = time.monotonic()
        policy = start.ready(arena)
        made = time.monotonic() - begun

        def evaluated() -> Cell:
            found = measure(arena, policy, start.suite.tasks, seeds=seeds).as_dict()
            rates = {"steps": arena.steps, "episodes": arena.episodes, "seconds": arena.seconds}
            return {**found, "minutes": made / 60, "arena": rates}

        found = cell(start.root / "start.json", evaluated)
    print(table(start.suite, found))
    return 0


def table(suite: Suite, found: Cell) -> str:
    """Return success per task as markdown."""
    result = Result.of(found)
    rows = [[task, percent(result.solved([task]))] for task in suite.tasks]
    rows.append(["all that RL trains on", percent(result.solved(suite.chosen))])
    rows.append(["the rest", percent(result.solved(suite.rest))])
    return markdown(["task", "success %, 95 % interval over episodes"], rows)


if __name__ == "__main__":
    raise SystemExit(main())
