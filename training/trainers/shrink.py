"""Make a LoRA checkpoint small enough to ship: `python -m training.trainers.shrink FROM TO`.

The adapter's weights become fp16 (half the size of fp32; nothing is lost of weights that were
trained in bfloat16 and lie in its range), and its configuration names the base as the manifest does.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from agent.serving.manifest import CheckpointError, read_manifest, write_manifest
from training.trainers.learner import name_base

WEIGHTS = "adapter_model.safetensors"


def shrink(source: Path, out: Path, *, version: str = "") -> int:
    """Write the adapter of `source` to `out` in fp16 and return its size in bytes.

    Raises CheckpointError for full weights, and for a weight that fp16 can't hold.
    """
    manifest = read_manifest(source)
    if manifest.kind != "lora" or manifest.base is None:
        raise CheckpointError(f"{source} holds full weights: only an adapter is small")
    tensors = {name: t.to(torch.float16) for name, t in load_file(source / WEIGHTS).items()}
    broken = [name for name, t in tensors.items() if not torch.isfinite(t).all()]
    if broken:
        raise CheckpointError(f"{source}: {broken[0]} does not fit into fp16")
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    (out / WEIGHTS).chmod(0o644)  # safetensors keeps its files to their owner
    shutil.copyfile(source / "adapter_config.json", out / "adapter_config.json")
    name_base(out, manifest.base)
    write_manifest(out, dataclasses.replace(manifest, version=version or manifest.version))
    return (out / WEIGHTS).stat().st_size


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.trainers.shrink")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", default="")
    options = parser.parse_args(argv)
    size = shrink(options.source, options.out, version=options.version)
    print(f"{options.out / WEIGHTS}: {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
