"""The SFT trainer, run as it is run in earnest: a process on a run directory; the models are tiny."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from agent.serving.checkpoint import load
from training.runs.rundir import RunDir
from training.trainers import ct, job, loop, sft, states
from training.trainers.batches import epoch_batches, plan
from training.trainers.rows import IGNORE, collate, encode
from training.trainers.shrink import shrink

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)

CONFIG = {
    "steps": 6, "batch_size": 4, "learning_rate": 0.01, "warmup_steps": 2, "lora_rank": 4,
    "save_every": 2, "threads": 1, "version": "t",
}  # fmt: skip


def row(n: int, **change: object) -> dict[str, object]:
    user = f'Task: click {"x" * (n % 5)}{n}\nScreen:\n[1] button "{n}"'
    return {
        "id": f"r{n}", "messages": [{"role": "user", "content": user}],
        "target": f"Thought: I click {n}.\nAction: click(element=1)", "images": [], "loss": True,
        "weight": 1.0, **change,
    }  # fmt: skip


def lines(rows: list[dict[str, object]]) -> list[str]:
    return [json.dumps(r) + "\n" for r in rows]


def make(path: Path, base: Path, rows: list[dict[str, object]] | None = None, **config: object):
    return RunDir.create(
        path, config={**CONFIG, "base": str(base), **config},
        lines=lines(rows if rows is not None else [row(n) for n in range(12)]),
    )  # fmt: skip


def metrics(run: RunDir) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def sft_main(argv: list[str]) -> int:
    return job.main("sft", sft.Config, sft.train, sft.show, argv)


def picture_in(folder: Path) -> str:
    file = io.BytesIO()
    Image.new("RGB", (128, 96), "red").save(file, "PNG")
    sha = hashlib.sha256(file.getvalue()).hexdigest()
    place = folder / "blobs" / sha[:2] / sha
    place.parent.mkdir(parents=True)
    place.write_bytes(file.getvalue())
    return sha


def weights(run: RunDir, step: int) -> dict[str, torch.Tensor]:
    return load_file(run.checkpoint(step) / "adapter_model.safetensors")


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_it_learns_says_how_and_leaves_a_checkpoint_that_loads(tmp_path, tiny_llama):
    run = make(tmp_path / "run", tiny_llama, [row(n) for n in range(4)], steps=40, save_every=0)
    assert sft_main([str(run.path)]) == 0
    said = metrics(run)
    assert [line["step"] for line in said] == list(range(1, 41))
    assert said[-1]["loss"] < said[0]["loss"] / 2
    assert set(said[0]) == {"step", "loss", "lr", "grad_norm", "tokens_per_s", "eta_s", "time"}
    status = run.status()
    assert (status.state, status.step, status.checkpoint) == (
        "succeeded",
        40,
        "checkpoints/step-40",
    )
    loaded = load(run.checkpoint(40))
    assert loaded.manifest.version == "t-step-40"
    settings = json.loads((run.checkpoint(40) / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == str(tiny_llama)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_resumed_run_gives_the_same_bits(tmp_path, tiny_llama, dtype, monkeypatch):
    whole = make(tmp_path / "whole", tiny_llama, dtype=dtype)
    assert sft_main([str(whole.path)]) == 0

    parts = make(tmp_path / "parts", tiny_llama, dtype=dtype)
    config = sft.Config.read(parts.config())
    stop = job.Stop()
    save = states.save

    def stop_after_three(run, step, state):
        stop.asked = step == 2
        save(run, step, state)

    monkeypatch.setattr(loop.states, "save", stop_after_three)
    status = sft.train(parts, config, stop)
    monkeypatch.undo()
    assert (status.state, status.step) == ("cancelled", 3)
    parts.append_metrics({"step": 99, "loss": 1.0})  # what a kill may leave behind
    assert sft_main([str(parts.path)]) == 0

    assert same(weights(whole, 6), weights(parts, 6))
    kept = ("step", "loss", "lr", "grad_norm")
    assert [[line[k] for k in kept] for line in metrics(whole)] == [
        [line[k] for k in kept] for line in metrics(parts)
    ]


def test_sigterm_checkpoints_and_a_second_start_finishes(tmp_path, tiny_llama):
    run = make(tmp_path / "run", tiny_llama, steps=100_000, save_every=0)
    command = [sys.executable, "-m", "training.trainers.sft", str(run.path)]
    trainer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while run.status().step < 3:
            assert trainer.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        trainer.send_signal(signal.SIGTERM)
        assert trainer.wait(60) == 0
    finally:
        trainer.kill()
    status = run.status()
    assert status.state == "cancelled"
    assert run.steps() == [status.step]
    assert metrics(run)[-1]["step"] == status.step


def test_the_loss_is_the_mean_over_the_steps_target_tokens_however_it_is_split(
    tmp_path, tiny_llama
):
    losses = []
    for micro in (0, 1, 150):
        run = make(tmp_path / str(micro), tiny_llama, steps=2, micro_tokens=micro)
        assert sft_main([str(run.path)]) == 0
        losses.append([line["loss"] for line in metrics(run)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] == pytest.approx(losses[0], rel=1e-4)


def test_only_the_target_counts_and_equals_a_plain_cross_entropy(tiny_llama):
    loaded = load(tiny_llama)
    rows = [encode(row(n), loaded, "") for n in (1, 4, 7)]
    batch = collate(rows, loaded, "")
    assert (batch["labels"] != IGNORE).sum(1).tolist() == [len(r.target) for r in rows]
    with torch.no_grad():
        summed = float(sft.summed_loss(loaded.model, batch))
        alone = 0.0
        for r in rows:
            ids = torch.tensor([r.prompt.ids + r.target])
            logits = loaded.model(ids).logits[0, len(r.prompt.ids) - 1 : -1]
            alone += float(
                torch.nn.functional.cross_entropy(logits, torch.tensor(r.target), reduction="sum")
            )
    assert summed == pytest.approx(alone, rel=1e-4)


def test_a_weight_of_zero_teaches_nothing(tmp_path, tiny_llama):
    rows = [row(0), row(1, weight=0.0)]
    run = make(tmp_path / "run", tiny_llama, rows, steps=1, batch_size=2)
    alone = make(tmp_path / "alone", tiny_llama, [row(0)], steps=1, batch_size=1)
    assert sft_main([str(run.path)]) == 0
    assert sft_main([str(alone.path)]) == 0
    assert metrics(run)[0]["loss"] == pytest.approx(metrics(alone)[0]["loss"], rel=1e-4)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (row(7, target=" "), "row r7: target must be a text"),
        (row(7, messages=[]), "row r7: messages must be a list"),
        (row(7, messages=[{"role": "robot", "content": "x"}]), "row r7: unknown role 'robot'"),
    ],
)
def test_the_first_broken_row_stops_the_run_before_a_step(tmp_path, tiny_llama, broken, message):
    run = make(tmp_path / "run", tiny_llama, [row(0), broken])
    assert sft_main([str(run.path)]) == 1
    assert run.status().state == "failed"
    assert message in run.status().error
    assert not (run.path / "metrics.jsonl").exists()


def test_rows_without_loss_and_rows_too_long_are_left_out(tmp_path, tiny_llama, capsys):
    long = row(5, messages=[{"role": "user", "content": "x" * 3000}])
    run = make(tmp_path / "run", tiny_llama, [row(0), row(1, loss=False), long], steps=1)
    assert sft_main([str(run.path)]) == 0
    said = capsys.readouterr().out
    assert "row r5" in said and "left out" in said
    assert "1 rows, 1 steps" in said


def test_a_lora_checkpoint_is_continued(tmp_path, tiny_lora, tiny_llama):
    run = make(tmp_path / "run", tiny_lora, steps=1, save_every=0)
    assert sft_main([str(run.path)]) == 0
    manifest = json.loads((run.checkpoint(1) / "tandem.json").read_text())
    assert (manifest["kind"], manifest["base"]) == ("lora", str(tiny_llama))


def test_all_weights_can_be_trained(tmp_path, tiny_lora):
    run = make(tmp_path / "run", tiny_lora, steps=1, lora_rank=0, save_every=0)
    assert sft_main([str(run.path)]) == 0
    loaded = load(run.checkpoint(1))
    assert (loaded.manifest.kind, loaded.manifest.base) == ("full", None)


def test_a_model_that_sees_is_trained_on_its_pictures(tmp_path, tiny_qwen3_vl):
    sha = picture_in(tmp_path)
    place = tmp_path / "blobs" / sha[:2] / sha
    content = [{"type": "image", "sha256": sha}, {"type": "text", "text": "Click."}]
    seen = [row(n, messages=[{"role": "user", "content": content}], images=[sha]) for n in (0, 1)]
    run = make(tmp_path / "run", tiny_qwen3_vl, seen, steps=12, blobs=str(tmp_path), save_every=0)
    assert sft_main([str(run.path)]) == 0
    said = metrics(run)
    assert said[-1]["loss"] < said[0]["loss"]

    place.unlink()
    lost = make(tmp_path / "lost", tiny_qwen3_vl, seen, blobs=str(tmp_path))
    assert sft_main([str(lost.path)]) == 1
    assert f"row r0: picture {sha}" in lost.status().error


def test_the_dry_run_shows_what_gets_loss(tmp_path, tiny_llama, capsys):
    run = make(tmp_path / "run", tiny_llama)
    assert sft_main([str(run.path), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "\033[32mThought: I click 0.\nAction: click(element=1)<|im_end|>\033[0m" in said
    assert run.status().state == "queued"


def test_an_epoch_has_every_row_once_and_depends_on_the_seed_alone(tiny_llama):
    loaded = load(tiny_llama)
    rows = [encode(row(n), loaded, "") for n in range(30)]
    first = epoch_batches(rows, 4, mix={}, seed=3, epoch=0)
    assert sorted(n for batch in first for n in batch) == list(range(30))
    assert first == epoch_batches(rows, 4, mix={}, seed=3, epoch=0)
    assert first != epoch_batches(rows, 4, mix={}, seed=3, epoch=1)
    whole = list(islice(plan(rows, 4, mix={}, seed=3, first=0), 20))
    assert whole[11:] == list(islice(plan(rows, 4, mix={}, seed=3, first=11), 9))


def test_datasets_are_mixed_by_weight(tiny_llama):
    loaded = load(tiny_llama)
    rows = [encode(row(n, source="main" if n < 20 else "other"), loaded, "") for n in range(30)]
    batches = epoch_batches(rows, 4, mix={"other": 2.5}, seed=1, epoch=0)
    times = Counter(number for batch in batches for number in batch)
    assert all(times[n] == 1 for n in range(20))
    assert sum(times[n] for n in range(20, 30)) == 25
    assert {times[n] for n in range(20, 30)} == {2, 3}


def test_continual_pretraining_learns_all_text_but_no_picture(tiny_llama, tiny_qwen3_vl, tmp_path):
    loaded = load(tiny_llama)
    rows = [encode(row(n, loss="all"), loaded, "") for n in (1, 4)]
    batch = collate(rows, loaded, "")
    assert (batch["labels"] != IGNORE).sum(1).tolist() == [r.length - 1 for r in rows]
    with torch.no_grad():
        summed = float(sft.summed_loss(loaded.model, batch))
        alone = 0.0
        for r in rows:
            ids = torch.tensor([r.prompt.ids + r.target])
            logits = loaded.model(ids).logits[0, :-1]
            alone += float(torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum"))
    assert summed == pytest.approx(alone, rel=1e-4)
    run = make(tmp_path / "run", tiny_llama, [row(n, loss="all") for n in range(4)], steps=4)
    assert job.main("ct", ct.Config, ct.train, ct.show, [str(run.path)]) == 0
    assert metrics(run)[-1]["loss"] < metrics(run)[0]["loss"]

    sees = load(tiny_qwen3_vl)
    picture = picture_in(tmp_path)
    content = [{"type": "image", "sha256": picture}, {"type": "text", "text": "Click."}]
    messages = [{"role": "user", "content": content}]
    seen = encode(row(1, messages=messages, images=[picture], loss="all"), sees, str(tmp_path))
    batch = collate([seen], sees, str(tmp_path))
    kinds = batch["mm_token_type_ids"]
    assert int(kinds.sum()) > 0 and bool((batch["labels"][kinds != 0] == IGNORE).all())


def test_an_adapter_shrinks_to_fp16_and_answers_alike(tmp_path, tiny_llama, tiny_lora):
    size = shrink(tiny_lora, tmp_path / "small", version="small-1")
    assert size < (tiny_lora / "adapter_model.safetensors").stat().st_size * 0.6
    full, small = load(tiny_lora), load(tmp_path / "small")
    assert small.manifest.version == "small-1"
    ids = torch.arange(8)[None]
    with torch.no_grad():
        assert torch.allclose(full.model(ids).logits, small.model(ids).logits, atol=0.05)
