"""The benchmark of the 2 to 7 B class: its path on a tiny model, and the shapes of the real ones."""

from __future__ import annotations

import pytest
import torch

from benchmarks import gpu
from training.trainers.masters import Masters


def test_the_same_path_runs_with_a_tiny_model(capsys):
    gpu.main(["--tiny", "--steps", "1", "--batch", "2", "--pictures", "2"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny")]
    assert [row.split("|")[2].strip() for row in rows] == ["SFT, LoRA 16", "PPO, LoRA 16"]


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-vl-3b", 3.75),
        ("qwen2.5-vl-7b", 8.29),
        ("qwen3-vl-2b", 2.13),
        ("qwen3-vl-4b", 4.44),
    ],
)
def test_the_shapes_have_the_weights_of_the_public_models(name, billions):
    model = gpu.model_of(name, "meta")
    assert sum(p.numel() for p in model.parameters()) / 1e9 == pytest.approx(billions, abs=0.01)


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA GPU"):
        gpu.main(["qwen3-vl-2b"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_real_shape_takes_steps(capsys):
    gpu.main(["qwen3-vl-2b", "--steps", "2", "--batch", "1", "--pictures", "1"])
    assert "| qwen3-vl-2b | SFT, LoRA 16 |" in capsys.readouterr().out


def test_bfloat16_leaves_the_angles_of_the_rotary_embedding_exact(tiny_llama):
    from agent.serving.checkpoint import load

    model = load(tiny_llama).model
    before = model.model.rotary_emb.inv_freq.clone()
    Masters(model, torch.bfloat16)
    after = model.model.rotary_emb.inv_freq
    assert after.dtype == torch.float32 and torch.equal(after, before)
    assert model.lm_head.weight.dtype == torch.bfloat16


pytest_plugins = ["tests.tiny"]
