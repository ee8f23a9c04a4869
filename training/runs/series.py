"""What a trainer's numbers are called, what they mean, and which are drawn on one plot, by kind of run.

A trainer writes a line per step into metrics.jsonl; the keys are named here once for the run's page,
the comparison and the event files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Series:
    """One number per step: its key, what it is called, its unit ("" for none)."""

    key: str
    label: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Series that are drawn together; `hint` says how to read them, `tall` marks the main ones."""

    key: str
    title: str
    hint: str
    keys: tuple[str, ...]
    tall: bool = False
    log: bool = False  # drawn on a logarithmic scale at first


SERIES = {
    one.key: one
    for one in (
        Series("loss", "loss"),
        Series("lr", "learning rate"),
        Series("grad_norm", "gradient norm"),
        Series("tokens_per_s", "tokens per second", "tokens/s"),
        Series("value_loss", "value loss"),
        Series("explained_variance", "explained variance"),
        Series("held_out_value_loss", "held-out value loss"),
        Series("held_out_explained_variance", "held-out explained variance"),
        Series("reward", "reward"),
        Series("success", "success"),
        Series("outcome_reward", "of the outcome"),
        Series("format_reward", "for unreadable replies"),
        Series("length_penalty", "for length"),
        Series("entropy", "entropy", "nats"),
        Series("think_tokens", "think tokens per step", "tokens"),
        Series("response_tokens", "sampled tokens per step", "tokens"),
        Series("rounds", "interaction rounds", "steps"),
        Series("policy_loss", "policy loss"),
        Series("positive_nll", "positive-example loss"),
        Series("kl", "KL of the update", "nats"),
        Series("kl_start", "KL to the start", "nats"),
        Series("mismatch_kl", "KL server to trainer", "nats"),
        Series("clip_high", "clipped above"),
        Series("clip_low", "clipped below"),
        Series("dual_clipped", "dual-clipped"),
        Series("staleness", "mean staleness", "updates"),
        Series("staleness_max", "highest staleness", "updates"),
        Series("too_stale", "steps too stale", "steps"),
        Series("left_out", "steps left out", "steps"),
        Series("behaviour_weight", "weight of stale samples"),
        Series("waited_s", "waited for episodes", "s"),
        Series("update_s", "updating", "s"),
        Series("episodes", "episodes"),
        Series("tokens", "tokens", "tokens"),
        Series("lambda_policy", "lambda of the policy"),
        Series("half_life", "half-life", "tokens"),
        Series("critic_grad_norm", "critic's gradient norm"),
        Series("accuracy", "accuracy"),
        Series("balanced_accuracy", "balanced accuracy"),
        Series("precision", "precision"),
        Series("recall", "recall"),
        Series("f1", "F1"),
        Series("spread", "distance of the sources"),
        Series("seconds", "adding up", "s"),
    )
}

_LOSS = Plot("loss", "Loss", "Mean over the tokens of a step.", ("loss",), tall=True)
_RATE = Plot("lr", "Learning rate", "Rises in the warm-up, then as the schedule says.", ("lr",))
_NORM = Plot(
    "grad_norm", "Gradient norm", "Before it is shortened; jumps say that a step went wrong.",
    ("grad_norm", "critic_grad_norm"),
)  # fmt: skip
_SPEED = Plot("speed", "Speed", "Tokens per second, all processes together.", ("tokens_per_s",))
_EXPLAINED = Plot(
    "explained_variance", "Explained variance",
    "1: the critic foresees every return; 0: no better than their mean; below: worse.",
    ("explained_variance", "held_out_explained_variance"),
)  # fmt: skip
_VALUE_LOSS = Plot(
    "value_loss", "Value loss", "Mean squared error of the critic.",
    ("value_loss", "held_out_value_loss"),
)  # fmt: skip

PLOTS: dict[str, tuple[Plot, ...]] = {
    "sft": (_LOSS, _RATE, _NORM, _SPEED),
    "ct": (_LOSS, _RATE, _NORM, _SPEED),
    "value": (
        Plot(_EXPLAINED.key, _EXPLAINED.title, _EXPLAINED.hint, _EXPLAINED.keys, tall=True),
        _VALUE_LOSS, _RATE, _NORM, _SPEED,
    ),
    # The first four are what UI-TARS-2 (arXiv 2509.02544) follows in its figures 7 to 10.
    "ppo": (
        Plot("reward", "Reward", "Mean of an update's episodes, and the share that succeeded.",
             ("reward", "success"), tall=True),
        Plot("entropy", "Entropy", "Of the policy per token; towards 0 it stops to explore.",
             ("entropy",)),
        Plot("think", "Think length", "Tokens of a step's thought, and of all that it sampled.",
             ("think_tokens", "response_tokens")),
        Plot("rounds", "Interaction rounds", "Steps of an episode.", ("rounds",)),
        _EXPLAINED,
        _VALUE_LOSS,
        Plot("kl", "KL", "What an update moved, how far from the start, and how far the server's numbers are from the trainer's.",
             ("kl", "kl_start", "mismatch_kl")),
        Plot("clip", "Clip fraction", "Share of the tokens whose ratio left the range.",
             ("clip_high", "clip_low", "dual_clipped")),
        Plot("staleness", "Staleness", "Updates that an episode lagged behind when it was learnt from.",
             ("staleness", "staleness_max")),
        Plot("too_stale", "Too stale", "Steps beyond the bound, and steps left out for other reasons: never learnt from.",
             ("too_stale", "left_out")),
        Plot("waited", "Waiting and updating", "Seconds of an update; much waiting asks for more rollout workers.",
             ("waited_s", "update_s")),
        Plot("policy_loss", "Policy loss", "Of PPO, and of the plain LM loss on successes.",
             ("policy_loss", "positive_nll")),
        Plot("shaping", "Parts of the reward", "The outcome, and what was taken from it.",
             ("outcome_reward", "format_reward", "length_penalty")),
        Plot("lambda", "Lambda of the policy", "Length-adaptive: nearer to 1 for longer episodes.",
             ("lambda_policy",)),
        Plot("half_life", "Half-life", "Tokens after which a reward counts half.", ("half_life",)),
        Plot("batch", "Tokens of an update", "That the policy sampled.", ("tokens",)),
        _RATE, _NORM, _SPEED,
    ),
    "orm": (
        Plot("accuracy", "Held-out accuracy", "Balanced: successes and failures count the same; 0.5 is guessing.",
             ("balanced_accuracy", "accuracy"), tall=True),
        Plot("f1", "F1, precision, recall", "Of the verdict that an episode succeeded.",
             ("f1", "precision", "recall")),
        Plot("reward", "RL reward", "Share of right verdicts in the RL steps.", ("reward",)),
        _LOSS, _RATE, _NORM, _SPEED,
    ),
    "merge": (),
}  # fmt: skip

HEADLINE = {
    "sft": ("loss", "lr", "grad_norm"),
    "ct": ("loss", "lr", "grad_norm"),
    "value": ("held_out_explained_variance", "explained_variance", "value_loss"),
    "ppo": ("reward", "success", "entropy", "explained_variance"),
    "orm": ("balanced_accuracy", "f1", "loss"),
    "merge": ("spread", "seconds"),
}
"""What stands in large figures above the plots, and first in a comparison."""


def keys_of(kind: str) -> list[str]:
    """Return the keys of a kind that are drawn, the main ones first."""
    keys = [*HEADLINE[kind], *(key for plot in PLOTS[kind] for key in plot.keys)]
    return list(dict.fromkeys(keys))


def point(kind: str, step: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page draws of one line: the step, the time, and the numbers there are."""
    wanted = [*keys_of(kind), "time", "tokens", "tokens_per_s"]
    numbers = {key: values[key] for key in wanted if isinstance(values.get(key), int | float)}
    return {"step": step} | numbers


def described(kind: str) -> list[dict[str, Any]]:
    """Return the plots of a kind with the names of their lines, for the page's script."""
    return [
        asdict(plot) | {"series": [asdict(SERIES[key]) for key in plot.keys]}
        for plot in PLOTS[kind]
    ]


def common(kinds: Iterable[str]) -> list[Series]:
    """Return what runs of these kinds can be compared by, what all of them have first."""
    each = [keys_of(kind) for kind in kinds]
    every = list(dict.fromkeys(key for keys in each for key in keys))
    shared = [key for key in every if all(key in keys for keys in each)]
    return [SERIES[key] for key in dict.fromkeys([*shared, *every])]
