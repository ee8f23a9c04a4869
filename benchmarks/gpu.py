"""Training steps of the 2 to 7 B class on one GPU: tokens/s, peak memory, MFU.

`python -m benchmarks.gpu [MODEL ...] [--lora 16] [--steps 6] [--batch 4] [--pictures 3] [--tiny]`. Models
have the public configuration and random weights; nothing is downloaded. `--tiny` runs the same path with
a tiny configuration, on a CPU too. Prints Markdown.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import io
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tests import tiny
from training.algos.policy import policy_loss, token_logprobs
from training.trainers import learner as learning
from training.trainers.loop import backward
from training.trainers.rows import IGNORE, Row, encode
from training.trainers.settings import Settings
from training.trainers.sft import summed_loss

SIZE = (1280, 720)
WARM = 2

# Dense bf16 peaks without sparsity, TFLOP/s, from NVIDIA's data sheets (SXM parts).
PEAKS = {"B200": 2250.0, "H200": 989.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0, "4090": 165.0}

NOTES = """
MFU = FLOP of the step / seconds / peak of the GPU in bf16. FLOP: a weight costs 2 per token forward and 2
for the gradient of its input, and 2 more where it is trained; attention over n tokens costs 4 n^2 d per
layer forward (half of it under a causal mask) and twice that backward. Vision weights count per patch,
language weights per token, the head per learnt token; recomputed activations are not counted. A frozen
vision tower costs its forward pass only.
"""


class Shape(NamedTuple):
    """A public configuration, as far as it differs from the class's defaults."""

    family: str
    text: dict[str, Any]
    vision: dict[str, Any]


_QWEN25_VISION = {
    "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "patch_size": 14,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31],
}  # fmt: skip
_QWEN3_VISION = {
    "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}  # fmt: skip


def _text(
    layers: int, width: int, inner: int, heads: int, kv: int, vocabulary: int, tied: bool
) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": width, "intermediate_size": inner,
        "num_attention_heads": heads, "num_key_value_heads": kv, "vocab_size": vocabulary,
        "tie_word_embeddings": tied, "max_position_embeddings": 32768,
    }  # fmt: skip


SHAPES = {
    "qwen2.5-vl-3b": Shape("2.5", _text(36, 2048, 11008, 16, 2, 151936, True), _QWEN25_VISION),
    "qwen2.5-vl-7b": Shape("2.5", _text(28, 3584, 18944, 28, 4, 152064, False), _QWEN25_VISION),
    "qwen3-vl-2b": Shape("3", _text(28, 2048, 6144, 16, 8, 151936, True), _QWEN3_VISION),
    "qwen3-vl-4b": Shape("3", _text(36, 2560, 9728, 32, 8, 151936, True), _QWEN3_VISION),
}


def model_of(name: str, device: str) -> Any:
    """Return a model of a public shape with random weights in bf16 on `device` ("meta": none)."""
    shape = SHAPES[name]
    rope = {"rope_type": "default", "rope_theta": 1e6 if shape.family == "2.5" else 5e6}
    vision = {**shape.vision, "out_hidden_size": shape.text["hidden_size"]}
    text = {**shape.text, "bos_token_id": None, "eos_token_id": tiny._number("<|im_end|>")}
    marks = {**tiny._marks(), "tie_word_embeddings": shape.text["tie_word_embeddings"]}
    if shape.family == "2.5":
        from transformers import Qwen2_5_VLConfig as Config
        from transformers import Qwen2_5_VLForConditionalGeneration as Model

        text["rope_parameters"] = {**rope, "mrope_section": [16, 24, 24]}
    else:
        from transformers import Qwen3VLConfig as Config  # type: ignore[assignment]
        from transformers import Qwen3VLForConditionalGeneration as Model  # type: ignore[assignment]

        sections = {"mrope_section": [24, 20, 20], "mrope_interleaved": True}
        text |= {"head_dim": 128, "rope_parameters": {**rope, **sections}}
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return Model(Config(text_config=text, vision_config=vision, **marks))
    finally:
        torch.set_default_dtype(torch.float32)


def build(name: str, folder: Path) -> Path:
    """Write a checkpoint of a public shape with random weights, and a tokenizer of bytes."""
    old = SHAPES[name].family == "2.5"
    patch, coordinates = (14, "resized") if old else (16, "thousandth")
    tiny._tokenizer(folder)
    tiny._save_vl(folder, model_of(name, "cuda"), patch, coordinates, name)
    edge = (2 * patch) ** 2
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    settings["size"] = {"shortest_edge": edge * 4, "longest_edge": edge * 1280}
    path.write_text(json.dumps(settings))
    return folder


def screenshots(folder: Path, count: int, size: tuple[int, int]) -> list[str]:
    """Write `count` pictures and return their hashes."""
    from PIL import Image

    found = []
    for n in range(count):
        file = io.BytesIO()
        Image.new("RGB", size, (40 * n % 256, 90, 160)).save(file, "PNG")
        sha = hashlib.sha256(file.getvalue()).hexdigest()
        place = folder / "blobs" / sha[:2] / sha
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.getvalue())
        found.append(sha)
    return found


def make_rows(
    loaded: Any, folder: Path, count: int, pictures: int, size: tuple[int, int]
) -> list[Row]:
    """Return rows of a task, `pictures` screenshots with what was done, and a thought with an action."""
    chance, shas = random.Random(0), screenshots(folder, pictures, size)
    rows = []
    for n in range(count):
        said = "".join(chance.choices("abcdefgh ", k=chance.randint(100, 300)))
        content: list[dict[str, str]] = [{"type": "text", "text": f"Task {n}: {said}"}]
        for sha in shas:
            content += [{"type": "image", "sha256": sha}, {"type": "text", "text": "Action: ..."}]
        target = f"Thought: {said[:120]}\nAction: click(start_box='({n},{n})')"
        record = {
            "id": f"r{n}", "messages": [{"role": "user", "content": content}], "target": target,
            "images": shas,
        }  # fmt: skip
        rows.append(encode(record, loaded, str(folder)))
    return rows


def ppo_like_loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the clipped policy loss with made-up advantages, as an update of PPO computes it."""
    labels, weights = batch.pop("labels"), batch.pop("weights")
    keep = labels.shape[1] - int((labels != IGNORE).any(0).int().argmax()) + 1
    logits = model(**batch, logits_to_keep=keep).logits[:, :-1]
    target = labels[:, -logits.shape[1] :]
    mask = target != IGNORE
    logprobs = token_logprobs(logits, target.clamp(min=0))
    advantages = (weights - 0.5)[:, None].expand_as(logprobs)
    return policy_loss(logprobs, logprobs.detach(), advantages, mask).sum


def flop(model: Any, rows: list[Row], trained_vision: bool) -> float:
    """Return the FLOP of one step on `rows`; see NOTES."""
    config, head = model.config, model.get_output_embeddings().weight
    text, vision = config.text_config, config.vision_config
    parts = {"vision": [0, 0], "text": [0, 0]}
    for name, p in model.named_parameters():
        if p is not head and "embed" not in name:
            kind = parts["vision" if "visual" in name else "text"]
            kind[0] += p.numel()
            kind[1] += p.numel() if p.requires_grad else 0
    width = text.num_attention_heads * getattr(
        text, "head_dim", text.hidden_size // text.num_attention_heads
    )
    total = 0.0
    for row in rows:
        merged = sum(row.prompt.extra["mm_token_type_ids"].flatten().tolist())
        patches = merged * vision.spatial_merge_size**2
        every, learnt = parts["text"]
        total += row.length * (4 * every + 2 * learnt)
        total += 6 * row.length**2 * width * text.num_hidden_layers
        total += (row.learnt + 1) * head.numel() * (6 if head.requires_grad else 4)
        every, learnt = parts["vision"]
        total += patches * (6 * learnt + (2 if not trained_vision else 4) * (every - learnt))
    return total


def measure(folder: Path, options: argparse.Namespace, kind: str, loss: Callable[..., Any]) -> str:
    """Run steps of one kind; returns a row of the table."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = Settings(
        base=str(folder), lora_rank=options.lora, dtype="bfloat16", blobs=str(folder),
        gradient_checkpointing=options.checkpointing, micro_tokens=options.micro_tokens,
    )  # fmt: skip
    loaded, manifest = learning.open_model(settings)
    rows = make_rows(
        loaded, folder, options.batch, options.pictures, (128, 96) if options.tiny else SIZE
    )
    learner = learning.Learner(loaded, manifest, settings, learning.accelerator())
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    count = sum(row.learnt for row in rows)
    seconds = []
    for _ in range(options.steps + WARM):
        started = time.perf_counter()
        value = float(backward(learner, rows, settings, loss, 1 / count))
        learner.step(1e-5)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    if value != value:
        raise SystemExit(f"{folder.name}: the loss is not a number")
    took = sorted(seconds[WARM:])[options.steps // 2]
    tokens = sum(row.length for row in rows)
    vision = any(
        "visual" in name and p.requires_grad for name, p in learner.model.named_parameters()
    )
    work, peak = flop(learner.model, rows, vision), peak_tflops()
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if device == "cuda" else "-"
    mfu = f"{work / took / peak / 1e10:.1f} %" if peak else "peak unknown"
    how = f"LoRA {options.lora}" if options.lora else "all weights"
    return (
        f"| {folder.name} | {kind}, {how} | {tokens / len(rows):.0f} | {took:.2f} | {tokens / took:.0f} | "
        f"{memory} | {work / 1e12:.2f} | {mfu} |"
    )


def peak_tflops() -> float:
    """Return the bf16 peak of the GPU in TFLOP/s; 0 where it is not known."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return next((peak for key, peak in PEAKS.items() if key in name), 0.0)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", help=f"of {', '.join(SHAPES)}; all if none is given")
    parser.add_argument("--lora", type=int, default=16, help="rank; 0 trains all weights")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--pictures", type=int, default=3)
    parser.add_argument("--micro-tokens", type=int, default=16384)
    parser.add_argument("--checkpointing", default="yes", choices=("yes", "no"))
    parser.add_argument("--tiny", action="store_true", help="a tiny model, on a CPU too")
    options = parser.parse_args(argv)
    if not options.tiny and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA GPU here; --tiny runs the same path on a CPU")
    if wrong := set(options.models) - set(SHAPES):
        raise SystemExit(
            f"no such model: {', '.join(sorted(wrong))}; there are {', '.join(SHAPES)}"
        )
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(
        f"{name}, torch {torch.__version__}, batch {options.batch}, {options.pictures} pictures a row"
    )
    print("| model | step | tokens a row | s/step | tokens/s | peak GiB | TFLOP/step | MFU |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="tandem-gpu-") as place:
        for model in ["tiny"] if options.tiny else options.models or list(SHAPES):
            folder = Path(place) / model
            tiny.make_qwen3_vl(folder) if options.tiny else build(model, folder)
            for kind, loss in (("SFT", summed_loss), ("PPO", ppo_like_loss)):
                print(measure(folder, options, kind, loss), flush=True)
                gc.collect()
                torch.cuda.empty_cache()
    print(NOTES)


if __name__ == "__main__":
    main()
