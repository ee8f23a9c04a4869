"""Training a model to judge episodes: what it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from training.presets.fields import BATCH_SIZE, LEARNING_RATE, STEPS, WEIGHTS, Field, Value
from training.presets.sft import EPOCHS
from training.presets.sft import check as _check

FIELDS = (
    EPOCHS,
    STEPS,
    BATCH_SIZE,
    dataclasses.replace(LEARNING_RATE, default=1e-4),
    Field("balance", "Balance", "Give successes and failures the same weight in all.", "yes", choices=("yes", "no")),
    Field("held_out", "Held out", "Share of the episodes that only tell how good it is.", 0.2, 0.05, 0.5),
    Field("rl_steps", "RL steps", "Of single-turn RL on its own verdicts afterwards; 0: none.", 0, 0, 100_000),
    Field("rl_group", "Verdicts per episode", "In an RL step.", 4, 2, 64),
    *WEIGHTS,
)  # fmt: skip
PRESETS: dict[str, dict[str, Value]] = {
    "standard": {},
    "quick": {"steps": 8, "batch_size": 2, "warmup_steps": 2, "save_every": 4, "lora_rank": 8},
}


def check(config: Mapping[str, Value]) -> dict[str, str]:
    """Return what is wrong with the values together, by field."""
    return _check(config)
