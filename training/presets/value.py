"""Value pretraining: what it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from training.presets.fields import BATCH_SIZE, LEARNING_RATE, STEPS, WEIGHTS, Field, Value

REWARD = (
    Field("gamma", "Discount", "Per token: 1 counts the outcome in full from the first token on.", 1.0, 0, 1),
    Field("format_reward", "Unreadable reply", "What each reply that names no action costs.", 0.1, 0, 10),
    Field("length_penalty", "Length penalty", "Cost at twice the steps below; in proportion between, nothing up to them.", 0.0, 0, 10),
    Field("length_budget", "Steps without penalty", "Of an episode.", 10, 1, 1000),
)  # fmt: skip
"""How episodes are rewarded: a critic and the policy that uses it need the same values."""

FIELDS = (
    # 50 steps as VAPO (arXiv 2504.05118, section 5.1); longer overfits (VC-PPO, 2503.01491).
    dataclasses.replace(STEPS, default=50, low=1, help="At most; it stops where it has converged."),
    dataclasses.replace(BATCH_SIZE, default=32, help="Episodes per optimiser step."),
    dataclasses.replace(LEARNING_RATE, default=2e-4, help="After the warm-up, then constant."),
    Field("held_out", "Held out", "Share of the episodes that only tell how good it is; the attempts at one task and seed stay together.", 0.2, 0.05, 0.5),
    Field("evaluate_every", "Look every", "Steps between two looks at the held-out episodes; each that is the best so far leaves a checkpoint.", 5, 1, 1000),
    Field("patience", "Patience", "Looks without gain after which it counts as converged.", 5, 1, 100),
    Field("min_gain", "Gain", "Of held-out explained variance that counts as one.", 0.01, 0, 1),
    *REWARD,
    *(field for field in WEIGHTS if field.name != "save_every"),  # it keeps the best looks
)  # fmt: skip
PRESETS: dict[str, dict[str, Value]] = {
    "standard": {},
    "quick": {"steps": 6, "batch_size": 4, "warmup_steps": 1, "evaluate_every": 2, "lora_rank": 8},
}


def check(config: Mapping[str, Value]) -> dict[str, str]:
    """Return what is wrong with the values together, by field."""
    if config["learning_rate"] == 0:
        return {"learning_rate": "a rate of 0 changes nothing"}
    return {}
