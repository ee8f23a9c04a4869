"""What the sampling loop needs of a model, and the two kinds that there are."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol

import torch
from safetensors import SafetensorError

from agent.serving.checkpoint import Files, find, load
from agent.serving.llama import Llama
from agent.serving.manifest import CheckpointError, Manifest, read_json
from agent.serving.processor import Encoded, Processor


class Decoder(Protocol):
    """One prompt in, then one token per row at a time. Not safe for two threads."""

    @property
    def limit(self) -> int:
        """How many tokens prompt and answer may have together."""
        ...

    def start(self, prompt: Encoded, room: int) -> tuple[torch.Tensor, Any]:
        """Read a prompt; return the logits (1, vocabulary) after it and a state."""
        ...

    def expand(self, state: Any, rows: int) -> Any:
        """Return a state with `rows` copies of the one row, which stays as it is."""
        ...

    def step(self, tokens: torch.Tensor, state: Any) -> torch.Tensor:
        """Read one token per row (n,); return the logits (n, vocabulary) after it."""
        ...


class Transformers:
    """Any transformers model, Qwen2.5-VL and Qwen3-VL among them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.sees = hasattr(model.config, "vision_config")
        config = model.config.get_text_config()
        self.limit: int = config.max_position_embeddings

    def start(self, prompt: Encoded, room: int) -> tuple[torch.Tensor, Any]:
        if self.sees:
            # Left over from the prompt before; without pictures nobody would replace it.
            self.model.model.rope_deltas = None
        result = self.model(
            input_ids=torch.tensor([prompt.ids]), use_cache=True, logits_to_keep=1, **prompt.extra
        )
        return result.logits[:, -1].float(), result.past_key_values

    def expand(self, state: Any, rows: int) -> Any:
        copy = deepcopy(state)
        copy.batch_repeat_interleave(rows)
        return copy

    def step(self, tokens: torch.Tensor, state: Any) -> torch.Tensor:
        result = self.model(input_ids=tokens[:, None], past_key_values=state, use_cache=True)
        logits: torch.Tensor = result.logits[:, -1].float()
        return logits


def open_decoder(uri: str, *, exact: bool = False) -> tuple[Decoder, Processor, Manifest]:
    """Open a checkpoint for decoding; raises CheckpointError.

    `exact` keeps plain Llama weights in fp32; what transformers opens is fp32 anyway. Plain Llama weights run in our own forward pass (see `agent.serving.llama`), everything else in
    transformers.
    """
    files = find(uri)
    try:
        if _plain_llama(files):
            decoder: Decoder = Llama(files.weights, files.adapter, exact=exact)
            return decoder, Processor(files.weights), files.manifest
        loaded = load(uri)
    except (OSError, KeyError, ValueError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{uri} can't be opened: {type(error).__name__}: {error}") from error
    return Transformers(loaded.model), loaded.processor, loaded.manifest


def _plain_llama(files: Files) -> bool:
    config = read_json(files.weights / "config.json")
    return (
        config.get("model_type") == "llama"
        and (files.weights / "model.safetensors").exists()
        and (config.get("rope_parameters") or {}).get("rope_type", "default") == "default"
        and not config.get("rope_scaling")  # as transformers before 5 wrote it
        and config.get("hidden_act", "silu") == "silu"
        and not config.get("quantization_config")
        and not config.get("attention_bias")
        and not config.get("mlp_bias")
    )
