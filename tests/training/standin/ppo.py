"""Speaks the run directory like the PPO trainer, without learning: each update copies the base."""

import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from agent.serving.manifest import read_manifest, write_manifest
from training.runs.rundir import RunDir, Status
from training.trainers.updates import Ledger, Pool, Update

stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
run = RunDir(sys.argv[1])
config = run.config()
total, batch, name = config["updates"], config["batch"], config["version"]
first = max(run.steps(), default=0)
run.cut_metrics(first)
ledger = Ledger(run.path)
pool = Pool(run.path, [one for update in ledger.updates[:first] for one in update.episodes])


def write(folder, version):
    if not folder.exists():
        partial = folder.with_name(f".{folder.name}.{os.getpid()}")
        partial.parent.mkdir(exist_ok=True)
        shutil.copytree(Path(config["base"]), partial)
        write_manifest(partial, replace(read_manifest(partial), version=version))
        partial.rename(folder)


def save(step):
    state = run.path / "state" / f"step-{step}.pt"
    state.parent.mkdir(exist_ok=True)
    state.write_bytes(b"s")
    write(run.checkpoint(step), f"{name}-step-{step}")


print(f"from step {first}", flush=True)
step = first
run.write_status(Status("running", step, total, os.getpid()))
while step < total and not stop:
    pool.look()
    if step < len(ledger.updates):
        ids = ledger.updates[step].episodes if pool.has(ledger.updates[step].episodes) else []
    else:
        ids = pool.choose(batch)
        if ids:
            ledger.append(Update(step + 1, ids, f"{name}-step-{step + 1}"))
    if not ids:
        if pool.ended:
            break
        run.write_status(Status("running", step, total, os.getpid()))
        time.sleep(0.05)
        continue
    step += 1
    pool.take(ids)
    write(run.path / "served" / f"step-{step}", f"{name}-step-{step}")
    run.append_metrics({"step": step, "reward": 0.0, "episodes": len(ids), "time": time.time()})
    run.write_status(Status("running", step, total, os.getpid()))
    if config["save_every"] and step % config["save_every"] == 0:
        save(step)
save(step)
run.write_status(Status("cancelled" if stop and step < total else "succeeded", step, total))
