"""The kinds of run in plain words, for somebody who launches one for the first time."""

from __future__ import annotations

from dataclasses import dataclass

from training.presets import Field, fields_of


@dataclass(frozen=True, slots=True)
class Guide:
    """What a kind of run is for, and which fields its form shows first."""

    kind: str
    title: str
    does: str
    when: str
    needs: str
    gives: str
    first: tuple[str, ...]
    # The rest by theme; what no theme names comes last.
    themes: tuple[tuple[str, tuple[str, ...]], ...] = ()


_COMMON = ("epochs", "steps", "batch_size", "learning_rate", "save_every")
_VALUES = ("Values and advantages", ("gamma", "lambda_policy", "alpha", "lambda_critic", "whiten", "value_clip"))  # fmt: skip

GUIDES = {
    guide.kind: guide
    for guide in (
        Guide(
            "sft", "Supervised fine-tuning",
            "Teaches a policy to act as people did: it learns the thought and the action of each step.",
            "First of all, and whenever good sessions have been added.",
            "A dataset of the SFT pool (V(s) = 1) and a policy to start from.",
            "A better policy: evaluate it, promote it, or go on with RL.",
            _COMMON,
        ),
        Guide(
            "ct", "Continual pre-training",
            "Goes on pre-training with everything that is not good enough to be imitated, gently and once.",
            "Rarely: when the CT pool has grown a lot.",
            "A dataset of the CT pool (V(s) = 0) and a policy to start from.",
            "A policy that knows more of the screens; fine-tune it afterwards.",
            _COMMON,
        ),
        Guide(
            "value", "Value pretraining",
            "Teaches a critic to foresee the reward of a fixed policy's episodes.",
            "Before PPO, for each policy that RL starts from: a fresh critic ruins its first updates.",
            "A policy, and an ended rollout that exactly this policy played on our own server.",
            "A critic that belongs to this policy, with the share of variance that it explains.",
            ("steps", "batch_size", "learning_rate", "held_out", "save_every"),
            (
                ("When it stops", ("evaluate_every", "patience", "min_gain")),
                ("Returns", ("gamma", "format_reward", "length_penalty", "length_budget")),
            ),
        ),
        Guide(
            "ppo", "Reinforcement learning",
            "Lets the policy play tasks that a program verifies, and makes what succeeded more likely.",
            "After SFT, when the policy solves some of the tasks but not all.",
            "A policy, tasks with verifiers, rollout workers, and a critic of this policy (GRPO needs none).",
            "A policy after each update; its episodes are a rollout that you can replay.",
            ("updates", "batch", "group", "learning_rate", "advantage", "any_critic", "max_steps", "save_every"),
            (
                ("Clipping and losses", ("clip_low", "clip_high", "dual_clip", "positive_lm", "entropy", "kl")),
                _VALUES,
                ("Critic", ("critic_learning_rate", "critic_updates", "min_explained_variance")),
                ("Reward", ("format_reward", "length_penalty", "length_budget")),
                ("Stale samples", ("staleness", "ratio_cap")),
                ("Batches and sampling", ("minibatches", "ppo_epochs", "temperature")),
            ),
        ),
        Guide(
            "orm", "Outcome reward model",
            "Teaches a model to say whether an episode succeeded.",
            "When tasks have no verifier: the model judges instead, after it was calibrated.",
            "A policy to start from, and a rollout or dataset of judged episodes: successes and failures.",
            "A checkpoint that judges: put it behind a deployment of its own, then calibrate it under Reward models.",
            ("epochs", "steps", "batch_size", "learning_rate", "held_out", "save_every"),
            (("Data and RL on verdicts", ("balance", "rl_steps", "rl_group")),),
        ),
        Guide(
            "merge", "Merge",
            "Adds up the weights of several specialists into one policy.",
            "When specialists were trained from the same policy, each on its own domain.",
            "Two or more checkpoints that go back to the same weights.",
            "One policy; evaluate it beside each specialist.",
            ("dtype",),
        ),
    )
}  # fmt: skip


def layout(kind: str) -> list[tuple[str, list[Field]]]:
    """Return the fields of a kind's form as (theme, fields); the first theme is what is shown first."""
    fields = {field.name: field for field in fields_of(kind)}
    guide = GUIDES[kind]
    parts = []
    for title, names in (("", guide.first), *guide.themes):
        parts.append((title, [fields.pop(name) for name in names if name in fields]))
    if fields:
        parts.append(("Weights, memory and the rest", list(fields.values())))
    return parts
