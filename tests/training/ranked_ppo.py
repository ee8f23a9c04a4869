"""Runs of PPO one after the other, in each of several processes: `python -m ... '["RUN_DIR", ...]'`."""

from __future__ import annotations

import json
import sys

from training.runs.rundir import RunDir
from training.trainers import ppo
from training.trainers.job import Stop

if __name__ == "__main__":
    for directory in json.loads(sys.argv[1]):
        run = RunDir(directory)
        ppo.train(run, ppo.Config.read(run.config()), Stop())
