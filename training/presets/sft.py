"""Supervised fine-tuning: what it is told."""

from __future__ import annotations

from collections.abc import Mapping

from training.presets.fields import BATCH_SIZE, LEARNING_RATE, STEPS, WEIGHTS, Field, Value

EPOCHS = Field(
    "epochs", "Epochs", "Times every row is seen; ignored where steps are given.", 3.0, 0, 1000
)
FIELDS = (EPOCHS, STEPS, BATCH_SIZE, LEARNING_RATE, *WEIGHTS)
PRESETS: dict[str, dict[str, Value]] = {
    "standard": {},
    "quick": {"steps": 8, "batch_size": 2, "warmup_steps": 2, "save_every": 4, "lora_rank": 8},
}


def check(config: Mapping[str, Value]) -> dict[str, str]:
    """Return what is wrong with the values together, by field."""
    if not config["steps"] and not config["epochs"]:
        return {"steps": "give steps or epochs: both are 0"}
    if config["learning_rate"] == 0:
        return {"learning_rate": "a rate of 0 changes nothing"}
    return {}
