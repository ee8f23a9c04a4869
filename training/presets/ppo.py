"""Reinforcement learning with PPO: what it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from training.presets.fields import LEARNING_RATE, WEIGHTS, Field, Value
from training.presets.value import REWARD

_WEIGHTS = tuple(
    dataclasses.replace(field, default={"save_every": 5, "warmup_steps": 2}[field.name])
    if field.name in ("save_every", "warmup_steps")
    else field
    for field in WEIGHTS
)
FIELDS = (
    Field("updates", "Updates", "Each of one batch of episodes.", 50, 1, 1_000_000),
    Field("batch", "Batch", "Episodes of an update; it begins as soon as so many are there.", 64, 1, 65_536),
    Field("group", "Group", "Episodes of the same task and seed; grpo and reinforce compare them.", 4, 1, 1024),
    dataclasses.replace(LEARNING_RATE, default=1e-5, help="Of the policy, after the warm-up, then constant."),
    Field("critic_learning_rate", "Critic's learning rate", "After the warm-up, then constant.", 2e-5, 0, 1),
    Field("advantage", "Advantage", "By a critic (gae), or by comparison in the group: over its deviation (grpo), or with the others' mean (reinforce).", "gae", choices=("gae", "grpo", "reinforce")),
    Field("minibatches", "Mini-batches", "Optimiser steps that a batch is split into.", 1, 1, 1024),
    Field("ppo_epochs", "Passes", "Times each batch is learnt from.", 1, 1, 16),
    Field("critic_updates", "Critic's passes", "Per pass of the policy.", 1, 1, 16),
    Field("clip_low", "Clip below", "How far a token's ratio may fall below 1.", 0.2, 0, 1),
    Field("clip_high", "Clip above", "How far it may rise above 1 (clip-higher).", 0.28, 0, 10),
    Field("dual_clip", "Dual clip", "Ratio beyond which a bad token counts no more; 0: none, else above 1.", 3.0, 0, 100),
    Field("value_clip", "Value clip", "How far a value may move from what it was; 0: as far as it likes.", 0.0, 0, 100),
    Field("lambda_policy", "Lambda of the policy", "0: length-adaptive, 1 - 1/(alpha l) for an episode of l tokens.", 0.0, 0, 1),
    Field("alpha", "Alpha", "Of the length-adaptive lambda; more lets the reward reach further back.", 0.05, 0.001, 100),
    Field("lambda_critic", "Lambda of the critic", "1: it learns Monte-Carlo returns.", 1.0, 0, 1),
    Field("whiten", "Whiten advantages", "To mean 0 and deviation 1 over the batch.", "yes", choices=("yes", "no")),
    Field("positive_lm", "Positive-example loss", "Weight of the LM loss on episodes that succeeded (VAPO).", 0.1, 0, 10),
    Field("entropy", "Entropy bonus", "Weight.", 0.0, 0, 1),
    Field("kl", "KL to the start", "Weight of the log-ratio to the start, taken from each token's reward.", 0.0, 0, 10),
    *REWARD,
    Field("staleness", "Staleness", "Updates that a step may lag behind; a staler one gets no loss and is counted.", 4, 0, 64),
    Field("ratio_cap", "Importance cap", "The most that the correction for stale samples multiplies a token's loss by.", 2.0, 0.1, 100),
    Field("min_explained_variance", "Critic at least", "It does not start with a critic that explains less of the held-out returns' variance.", 0.1, -1, 1),
    Field("any_critic", "Start anyway", "Also with a worse critic, one of another policy, or a fresh one.", "no", choices=("no", "yes")),
    Field("temperature", "Temperature", "Of the samples; only at 1 are they from the distribution that is trained.", 1.0, 0.05, 2),
    Field("max_steps", "Steps of an episode", "At most; 0: what the task says.", 0, 0, 1000),
    *_WEIGHTS,
)  # fmt: skip
PRESETS: dict[str, dict[str, Value]] = {
    "UI-TARS-2": {},
    "GRPO": {"advantage": "grpo", "group": 8, "positive_lm": 0.0},
    "quick": {"updates": 3, "batch": 8, "group": 2, "warmup_steps": 0, "save_every": 1,
              "lora_rank": 8, "any_critic": "yes"},
}  # fmt: skip


def check(config: Mapping[str, Value]) -> dict[str, str]:
    """Return what is wrong with the values together, by field."""
    errors = {}
    batch, group = int(config["batch"]), int(config["group"])
    if batch % group:
        errors["group"] = f"a batch of {batch} is no multiple of {group}"
    elif config["advantage"] != "gae" and group < 2:
        errors["group"] = f"{config['advantage']} compares episodes: a group needs at least 2"
    if batch % int(config["minibatches"]):
        errors["minibatches"] = f"a batch of {batch} can't be split into {config['minibatches']}"
    if 0 < float(config["dual_clip"]) <= 1:
        errors["dual_clip"] = "it must be above 1, or 0 for none"
    if config["learning_rate"] == 0:
        errors["learning_rate"] = "a rate of 0 changes nothing"
    return errors
