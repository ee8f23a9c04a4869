"""Several processes learn what one learns, weights whole or sharded, and stop and go on as one.

Gloo on a CPU, in fp32. The tolerances are what another order of adding up leaves after six steps of
AdamW with a learning rate of 0.001, which moves a weight by at most 0.001 a step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.test_sft import make, metrics, row, sft_main
from training.runs import process
from training.runs.rundir import RunDir
from training.trainers import launcher

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
# Seven rows in batches of four: the second batch has three, an uneven share; three passes a step.
ROWS = [row(n) for n in range(7)]
CONFIG = {"learning_rate": 1e-3, "micro_tokens": 180, "save_every": 3}
LOSS, WEIGHT = 1e-4, 2e-4


@pytest.fixture(autouse=True)
def local(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


def weights(run: RunDir, step: int = 6) -> dict[str, torch.Tensor]:
    (file,) = run.checkpoint(step).glob("*.safetensors")
    return load_file(file)


def furthest(a: RunDir, b: RunDir) -> float:
    ours, theirs = weights(a), weights(b)
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours)


def test_one_process_two_and_two_with_sharded_weights_learn_the_same(tmp_path, tiny_llama):
    def run(name: str, **config: object) -> RunDir:
        return make(tmp_path / name, tiny_llama, ROWS, **{**CONFIG, **config})

    alone = {rank: run(f"alone-{rank}", lora_rank=rank) for rank in (0, 4)}
    for one in alone.values():
        assert sft_main([str(one.path)]) == 0
    ways = [(s, rank) for s in ("none", "fsdp2") for rank in (0, 4)]
    whole = {way: run(f"{way[0]}-{way[1]}", sharding=way[0], lora_rank=way[1]) for way in ways}
    halted = {s: run(f"{s}-halted", sharding=s, lora_rank=0) for s in ("none", "fsdp2")}
    # What one process left is gone on with by two that shard it: the state is whole either way.
    moved = run("moved", sharding="fsdp2", lora_rank=0)
    plan = [
        *((str(one.path), 0) for one in whole.values()),
        *((str(one.path), stop) for one in halted.values() for stop in (4, 0)),
    ]
    source = alone[0]
    for part in ("checkpoints/step-3", "state"):
        target = moved.path / part
        target.parent.mkdir(exist_ok=True)
        os.symlink(source.path / part, target)
    plan.append((str(moved.path), 0))
    command = [*launcher.command("tests.training.ranked", json.dumps(plan), {"processes": 2})]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stdout + done.stderr

    for (sharding, rank), one in whole.items():
        losses = [line["loss"] for line in metrics(one)]
        expected = [line["loss"] for line in metrics(alone[rank])]
        assert losses == pytest.approx(expected, rel=LOSS), sharding
        assert furthest(one, alone[rank]) < WEIGHT, sharding
    for sharding, one in halted.items():
        assert f"resumed at step {one.steps()[-2]}" in done.stdout
        assert [line["step"] for line in metrics(one)] == list(range(1, 7))
        assert 4 in one.steps()
        assert furthest(one, whole[sharding, 0]) == 0, sharding
    assert furthest(moved, alone[0]) < WEIGHT


def test_sigterm_to_the_group_checkpoints_and_stops_every_process(tmp_path, tiny_llama):
    run = make(tmp_path / "run", tiny_llama, ROWS, steps=100_000, save_every=0)
    module, *arguments = launcher.command("training.trainers.sft", run.path, {"processes": 2})
    trainer = process.start(run.path, module, arguments, extra={})
    try:
        deadline = time.monotonic() + 240
        while run.status().step < 2:
            assert not trainer.ended() and time.monotonic() < deadline, run.log.read_text()
            time.sleep(0.05)
        trainer.send(signal.SIGTERM)
        assert trainer.child is not None and trainer.child.wait(60) == 0, run.log.read_text()
    finally:
        trainer.send(signal.SIGKILL)
    assert run.status().state == "cancelled"
    assert run.steps() == [run.status().step]
    assert not process.held(run.path)


def test_what_fails_ends_every_process_and_is_named(tmp_path):
    run = RunDir.create(tmp_path, config={"steps": 1})
    command = launcher.command("training.trainers.sft", run.path, {"processes": 2})
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, timeout=100, check=False)
    assert done.returncode == 1
    assert run.status().state == "failed"
    assert "config.yaml has no base" in run.status().error


def test_a_kind_without_the_key_is_one_process_and_a_cpu_too(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert launcher.command("m", tmp_path, {}) == ["m", str(tmp_path)]
    assert launcher.command("m", tmp_path, {"processes": 0}) == ["m", str(tmp_path)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    assert launcher.command("m", tmp_path, {}) == ["m", str(tmp_path)]
    assert launcher.command("m", tmp_path, {"processes": 0})[1:] == ["3", "m", str(tmp_path)]
