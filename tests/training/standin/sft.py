"""Speaks the run directory like a trainer, without a model: `step_s` seconds per step.

A file `hold` in the directory names the step after which it waits, until the file is gone.
"""

import json
import os
import signal
import sys
import time

from training.runs.rundir import RunDir, Status

stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
run = RunDir(sys.argv[1])
config = run.config()
total = config["steps"]
first = max(run.steps(), default=0)
run.cut_metrics(first)


def held(step):
    try:
        return step >= int((run.path / "hold").read_text())
    except FileNotFoundError:
        return False


def save(step):
    partial = run.checkpoints / f".step-{step}"
    partial.mkdir(exist_ok=True)
    (partial / "weights").write_bytes(b"w" * step)
    manifest = {"format": 1, "dialect": "element", "observation": "elements"}
    (partial / "tandem.json").write_text(json.dumps(manifest))
    (run.path / "state").mkdir(exist_ok=True)
    (run.path / "state" / f"step-{step}.pt").write_bytes(b"s")
    if not run.checkpoint(step).exists():
        partial.rename(run.checkpoint(step))


print(f"from step {first}", flush=True)
run.write_status(Status("running", first, total, os.getpid()))
step = first
try:
    while step < total and not stop:
        if held(step):
            time.sleep(0.02)
            continue
        step += 1
        if config["learning_rate"] == 0.5:
            raise FloatingPointError("the loss is nan")
        time.sleep(config["weight_decay"])  # stands for the seconds of a step
        run.append_metrics({"step": step, "loss": 1 / step, "lr": 0.1, "grad_norm": 1.0,
                            "tokens_per_s": 10, "eta_s": total - step, "time": time.time()})  # fmt: skip
        run.write_status(Status("running", step, total, os.getpid()))
        if config["save_every"] and step % config["save_every"] == 0:
            save(step)
    save(step)
    run.write_status(Status("succeeded" if step == total else "cancelled", step, total))
except FloatingPointError as error:
    run.write_status(Status("failed", step, total, error=str(error)))
    sys.exit(1)
