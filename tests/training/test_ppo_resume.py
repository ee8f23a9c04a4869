"""A run over a stream may be killed at any moment, and may be several processes: it learns the same."""

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

from agent.serving.checkpoint import load
from tests.training.toy import metrics, play, stream, uneven
from training.data.stream_rows import append
from training.runs.rundir import RunDir
from training.trainers import job, ppo, streamed
from training.trainers.launcher import command
from training.trainers.updates import Ledger, Pool, Update

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
CONFIG = {
    "version": "p", "updates": 6, "batch": 4, "group": 2, "lora_rank": 4, "warmup_steps": 1,
    "learning_rate": 1e-2, "critic_learning_rate": 1e-2, "any_critic": "yes", "threads": 1,
    "save_every": 2, "minibatches": 2, "ppo_epochs": 2,
}  # fmt: skip
TIMED = ("time", "tokens_per_s", "eta_s", "waited_s", "update_s")


class Killed(BaseException):
    """As if the process was killed there."""


def ppo_main(argv: list[str]) -> int:
    return job.main("ppo", ppo.Config, ppo.train, ppo.show, argv)


@pytest.fixture(scope="module")
def episodes(tiny_llama):
    return uneven(load(tiny_llama), 24)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_llama, episodes) -> RunDir:
    """A run that nobody stopped."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run = stream(path, episodes, base=str(tiny_llama), **CONFIG)
    assert ppo_main([str(run.path)]) == 0
    return run


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found = {}
    for file in folder.glob("*.safetensors"):
        found |= {f"{file.name}/{name}": t for name, t in load_file(file).items()}
    return found


def assert_same(a: RunDir, b: RunDir) -> None:
    for kind in ("checkpoints", "critics", "served"):
        ours, theirs = weights(a.path / kind / "step-6"), weights(b.path / kind / "step-6")
        assert ours.keys() == theirs.keys() and len(ours) > 10
        assert all(torch.equal(ours[name], theirs[name]) for name in ours), kind
    for one, other in zip(metrics(a), metrics(b), strict=True):
        assert {k: v for k, v in one.items() if k not in TIMED} == {
            k: v for k, v in other.items() if k not in TIMED
        }
    assert (a.path / "updates.jsonl").read_text() == (b.path / "updates.jsonl").read_text()


MOMENTS = {
    "the update is written down": (Ledger, "append"),
    "the weights have moved": (streamed.Streamed, "serve"),
    "weights are served, figures are not written": (RunDir, "append_metrics"),
    "the state is to be written": (streamed.states, "save"),
    "the actor is to be written": (streamed.Learner, "write"),
    "the critic is to be written": (streamed, "fingerprint"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_anywhere_it_goes_on_with_the_same_bits(
    tmp_path, tiny_llama, episodes, whole, monkeypatch, moment
):
    run = stream(tmp_path / "run", episodes[:10], end=False, base=str(tiny_llama), **CONFIG)
    place, name = MOMENTS[moment]
    real, calls = getattr(place, name), []

    def die(*args: object, **named: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            if name in ("append", "serve"):  # after it, not before
                real(*args, **named)
            raise Killed
        return real(*args, **named)

    monkeypatch.setattr(place, name, die)
    # Somebody writes the rest of the stream while it waits.
    monkeypatch.setattr(streamed.time, "sleep", lambda _: append(run.path, episodes[10:], end=True))
    with pytest.raises(Killed):
        ppo_main([str(run.path)])
    monkeypatch.setattr(place, name, real)
    (run.path / "updates.jsonl").open("a").write('{"update": 99, "epi')  # cut short by a kill
    if (
        not Pool(run.path, ()).ended
        and len((run.path / "stream.jsonl").read_text().splitlines()) == 10
    ):
        append(run.path, episodes[10:], end=True)
    assert ppo_main([str(run.path)]) == 0
    assert_same(run, whole)


def test_asked_to_stop_while_it_waits_it_saves_and_later_goes_on(
    tmp_path, tiny_llama, episodes, whole
):
    run = stream(tmp_path / "run", episodes[:6], end=False, base=str(tiny_llama), **CONFIG)
    argv = [sys.executable, "-m", "training.trainers.ppo", str(run.path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (tmp_path / "log").open("w") as log:
        trainer = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 120
            while run.status().step < 1:
                assert trainer.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            trainer.send_signal(signal.SIGTERM)
            assert trainer.wait(60) == 0
        finally:
            trainer.kill()
    assert (run.status().state, run.status().step, run.steps()) == ("cancelled", 1, [1])
    append(run.path, episodes[6:], end=True)
    assert ppo_main([str(run.path)]) == 0
    assert_same(run, whole)


def test_a_state_from_another_machine_brings_its_updates_along(
    tmp_path, tiny_llama, episodes, whole
):
    run = stream(tmp_path / "run", episodes, base=str(tiny_llama), **CONFIG)
    for part in ("checkpoints/step-4", "state"):
        (run.path / part).symlink_to(whole.path / part)
    (run.path / "state").unlink()
    (run.path / "state").mkdir()
    (run.path / "state" / "step-4.pt").symlink_to(whole.path / "state" / "step-4.pt")
    assert ppo_main([str(run.path)]) == 0
    assert (run.path / "updates.jsonl").read_text() == (whole.path / "updates.jsonl").read_text()
    ours, theirs = weights(run.checkpoint(6)), weights(whole.checkpoint(6))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_two_processes_learn_what_one_learns_whole_or_sharded(
    tmp_path, tiny_llama, episodes, monkeypatch
):
    """Gloo, fp32; three updates of four steps with a learning rate of 1e-4. Weights differ by less than
    5e-5 and losses by 1e-4: what another order of adding up leaves."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    config = {
        **CONFIG, "base": str(tiny_llama), "learning_rate": 1e-4, "critic_learning_rate": 1e-4,
        "micro_tokens": 60, "updates": 3, "save_every": 0, "kl": 0.1,
    }  # fmt: skip
    alone = stream(tmp_path / "alone", episodes[:11], **config)
    assert ppo_main([str(alone.path)]) == 0
    runs = [
        stream(tmp_path / way, episodes[:11], **config, sharding=way) for way in ("none", "fsdp2")
    ]
    plan = json.dumps([str(run.path) for run in runs])
    argv = [sys.executable, "-m", *command("tests.training.ranked_ppo", plan, {"processes": 2})]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    for run in runs:
        for one, other in zip(metrics(alone), metrics(run), strict=True):
            same = {k: v for k, v in one.items() if k not in TIMED}
            assert {k: other[k] for k in same} == pytest.approx(same, rel=1e-3, abs=1e-4)
        for kind in ("checkpoints", "critics"):
            ours, theirs = (weights(r.path / kind / "step-3") for r in (alone, run))
            assert ours.keys() == theirs.keys()
            assert max(float((ours[n] - theirs[n]).abs().max()) for n in ours) < 5e-5, kind


def test_a_batch_is_the_oldest_episodes_and_groups_stay_together(tmp_path, tiny_llama):
    loaded = load(tiny_llama)
    made = play(loaded, 12, seed=1, group=4)
    late = [made[n] for n in (0, 4, 5, 1, 6, 7, 2, 8)]  # the second group is complete first
    append(tmp_path, late)
    pool = Pool(tmp_path, ())
    pool.look()
    ids = [episode.id for episode in late]
    assert pool.choose(3) == ids[:3] and pool.choose(9) == []
    assert pool.choose(4, group=4) == [made[n].id for n in (4, 5, 6, 7)]
    assert pool.choose(8, group=4) == []
    # Nothing more will be admitted: what is there has to do.
    assert pool.choose(8, group=4, admitted=8) == [made[n].id for n in (4, 5, 6, 7, 0, 1, 2, 8)]
    pool.take(pool.choose(4, group=4))
    append(tmp_path, [made[3], made[0]], end=True)  # one of them comes again
    pool.look()
    assert pool.choose(8, group=4) == [made[n].id for n in (0, 1, 2, 3, 8)]
    assert len(pool.waiting) == 5 and pool.ended
    again = Pool(tmp_path, [made[n].id for n in (0, 4, 5, 6, 7)])
    again.look()
    assert list(again.waiting) == [made[n].id for n in (1, 2, 8, 3)]


def test_groups_that_lack_members_never_keep_an_update_waiting_for_ever(tmp_path, tiny_llama):
    # Batches of one group of 4, staleness 1: 8 episodes are admitted, and 4 more with each update.
    made = play(load(tiny_llama), 16, seed=1, group=4)
    append(tmp_path, [made[n] for n in (0, 1, 2, 4, 5, 6, 8, 9)])  # two of them broke for good
    pool = Pool(tmp_path, ())
    pool.look()
    first = pool.choose(4, group=4, admitted=8)
    assert first == [made[n].id for n in (0, 1, 2, 4, 5, 6)]  # whole groups: more than a batch
    pool.take(first)
    append(tmp_path, [made[n] for n in (10, 12, 13, 14)])  # two more broke: none is complete
    pool.look()
    assert pool.choose(4, group=4, admitted=12) == [made[n].id for n in (8, 9, 10, 12, 13, 14)]
    again = Pool(tmp_path, first)
    again.look()
    assert again.choose(4, group=4, admitted=12)


def test_the_ledger_drops_a_line_that_a_kill_cut_short(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(Update(1, ["a"], "p-step-1"))
    with (tmp_path / "updates.jsonl").open("a") as file:
        file.write('{"update": 2, "epis')
    again = Ledger(tmp_path)
    assert again.updates == [Update(1, ["a"], "p-step-1")]
    again.append(Update(2, ["b"], "p-step-2"))
    lines = (tmp_path / "updates.jsonl").read_text().splitlines()
    assert [json.loads(line)["episodes"] for line in lines] == [["a"], ["b"]]
