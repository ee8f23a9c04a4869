"""Continual pre-training: what it is told."""

from __future__ import annotations

import dataclasses

from training.presets.fields import BATCH_SIZE, LEARNING_RATE, STEPS, WEIGHTS, Value
from training.presets.sft import EPOCHS, check

# It learns from all text, much of it wrong as an action: gently, and once.
FIELDS = (
    dataclasses.replace(EPOCHS, default=1.0),
    STEPS,
    BATCH_SIZE,
    dataclasses.replace(LEARNING_RATE, default=5e-5),
    *WEIGHTS,
)
PRESETS: dict[str, dict[str, Value]] = {
    "standard": {},
    "quick": {"steps": 8, "batch_size": 2, "warmup_steps": 2, "save_every": 4, "lora_rank": 8},
}

__all__ = ["FIELDS", "PRESETS", "check"]
