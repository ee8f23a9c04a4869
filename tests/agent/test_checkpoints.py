"""Checkpoints that our own forward pass can't do, or that are damaged: never served as if all were well."""

import json
import shutil

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file, save_file  # noqa: E402 (behind the skip)

from agent.serving import base, fetch  # noqa: E402
from agent.serving.decoder import Transformers, open_decoder  # noqa: E402
from agent.serving.engine import Engine  # noqa: E402
from agent.serving.manifest import CheckpointError  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "unlike",
    [
        {
            "rope_parameters": None,
            "rope_theta": 10_000.0,
            "rope_scaling": {"rope_type": "linear", "factor": 2.0},
        },
        {"hidden_act": "gelu"},
    ],
)
def test_a_llama_that_is_not_plain_is_computed_by_transformers(tiny_llama, tmp_path, unlike):
    folder = shutil.copytree(tiny_llama, tmp_path / "unlike")
    config = json.loads((folder / "config.json").read_text()) | unlike
    (folder / "config.json").write_text(json.dumps(config))
    decoder, _, _ = open_decoder(str(folder))
    assert isinstance(decoder, Transformers)


@pytest.mark.parametrize("extra", ["lora_magnitude_vector.weight", "lora_B.bias"])
def test_an_adapter_with_more_than_a_plain_lora_is_refused(tiny_lora, tmp_path, extra):
    folder = shutil.copytree(tiny_lora, tmp_path / "more")
    weights = load_file(folder / "adapter_model.safetensors")
    module = next(iter(weights)).partition(".lora_")[0]
    save_file({**weights, f"{module}.{extra}": torch.ones(3)}, folder / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match=extra.split(".")[0]):
        open_decoder(str(folder))


@pytest.mark.parametrize("damage", ["weights", "config"])
def test_a_damaged_checkpoint_is_named_and_a_start_falls_back(tiny_llama, tmp_path, damage, caplog):
    folder = shutil.copytree(tiny_llama, tmp_path / "damaged")
    if damage == "weights":  # as a full disk leaves them
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    else:
        config = json.loads((folder / "config.json").read_text())
        del config["rms_norm_eps"]
        (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="damaged"):
        open_decoder(str(folder))
    state = tmp_path / "state"
    state.mkdir()
    (state / "served.json").write_text(json.dumps({"checkpoint": str(folder), "version": "v9"}))
    engine = Engine(state)
    engine.start(str(tiny_llama), "tiny")
    engine.load(str(tiny_llama), "tiny").result()  # the same queue: comes after the start
    assert engine.served().version == "tiny"
    assert "what was served last can't be loaded" in caplog.text


def test_what_a_killed_process_left_of_a_model_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TANDEM_MODEL_CACHE", str(tmp_path / "models"))
    left = [tmp_path / "models" / ".converting-x", tmp_path / "models" / "fetched" / ".fetching-x"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "half").write_bytes(b"1")
    monkeypatch.setattr(base, "_gguf", lambda: tmp_path)
    monkeypatch.setattr(base, "_convert", lambda gguf, folder: None)
    monkeypatch.setattr(fetch, "_download", lambda uri, folder: None)
    assert base.base_folder(base.SMOLLM2).is_dir()
    assert fetch.fetch("s3://bucket/checkpoint").is_dir()
    assert not any(folder.exists() for folder in left)
