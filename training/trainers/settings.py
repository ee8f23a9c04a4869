"""What every trainer that moves weights is told; see training.presets for what people are told of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from training.runs.rundir import RunDirError

T = TypeVar("T", bound="Settings")


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The keys of config.yaml that all trainers share.

    `base` is what agent.serving.checkpoint.find takes, `version` names the checkpoints, `blobs` is a
    folder with blobs/<sha[:2]>/<sha> for rows with pictures, `threads` 0 lets torch decide.
    `micro_tokens` bounds the padded tokens of a forward pass (0: a step is one pass). `sharding` is "auto",
    "none" or "fsdp2"; how many processes there are is the launcher's business.
    """

    base: str
    version: str = ""
    learning_rate: float = 2e-4
    warmup_steps: int = 10
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    lora_rank: int = 16
    max_tokens: int = 2048
    micro_tokens: int = 0
    gradient_checkpointing: str = "no"
    save_every: int = 50
    seed: int = 0
    dtype: str = "float32"
    sharding: str = "auto"
    blobs: str = ""
    threads: int = 0

    @classmethod
    def read(cls: type[T], record: Mapping[str, Any]) -> T:
        """Return the configuration; keys that only others need are left alone."""
        names = {field.name for field in dataclasses.fields(cls)}
        if not record.get("base"):
            raise RunDirError("config.yaml has no base: which weights are to be trained?")
        return cls(**{key: value for key, value in record.items() if key in names})
