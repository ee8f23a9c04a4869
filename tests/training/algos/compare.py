"""Our functions beside other projects' on the same inputs: `python -m tests.training.algos.compare`.

Prints the largest absolute difference for each; tests/references/make_references.py made the
fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from training.algos.gae import (
    decoupled_gae,
    gae,
    length_adaptive_lambda,
    monte_carlo_returns,
    terminal,
)
from training.algos.group import grpo, leave_one_out
from training.algos.masked import masked_mean, masked_var, masked_whiten
from training.algos.merge import merge
from training.algos.policy import behaviour_weights, entropy, kl, policy_loss, token_logprobs
from training.algos.value import explained_variance, value_loss
from training.rollouts.admission import admitted

REFERENCES = Path(__file__).resolve().parents[2] / "references"
LIMIT = 1e-10
# verl adds 1e-8 to the number of tokens before it divides by it.
ROUGHER = {f"verl {name}": 1e-8 for name in ("gae", "masked", "policy_loss", "value_loss")}


def load(project: str, function: str) -> Iterator[tuple[dict[str, Any], Any, dict[str, Any]]]:
    """Yield (inputs, options, outputs) of each case, with lists as fp64 or int64 tensors."""
    record = json.loads((REFERENCES / f"{project}.json").read_text())
    for case in record["cases"][function]:
        inputs, outputs = (
            {name: tensor(value) for name, value in case[side].items()}
            for side in ("inputs", "outputs")
        )
        yield inputs, case["options"], outputs


def tensor(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    made = torch.tensor(value, dtype=torch.float64)
    whole = json.dumps(value).find(".") < 0
    return made.long() if whole else made


def apart(ours: Tensor | float, theirs: Tensor | float) -> float:
    with torch.no_grad():
        ours, theirs = (torch.as_tensor(side, dtype=torch.float64) for side in (ours, theirs))
        return float((ours - theirs).abs().max())


def lam_of(options: dict[str, Any]) -> Any:
    return tensor(options["lam"])


def torchrl_gae() -> Iterator[float]:
    for given, options, theirs in load("torchrl", "gae"):
        yield apart(gae(**given, gamma=options["gamma"], lam=options["lam"]), theirs["advantages"])


def torchrl_returns() -> Iterator[float]:
    for given, options, theirs in load("torchrl", "returns"):
        _, ours = decoupled_gae(
            **given, gamma=options["gamma"], lam_policy=0.5, lam_critic=options["lam"]
        )
        yield apart(ours, theirs["returns"])


def torchrl_monte_carlo_returns() -> Iterator[float]:
    for given, options, theirs in load("torchrl", "monte_carlo_returns"):
        ours = monte_carlo_returns(given["rewards"], given["mask"], gamma=options["gamma"])
        yield apart(ours, theirs["returns"])


def verl_gae() -> Iterator[float]:
    for given, options, theirs in load("verl", "gae"):
        lam = lam_of(options)
        advantages, returns = decoupled_gae(
            **given, gamma=options["gamma"], lam_policy=lam, lam_critic=lam
        )
        yield apart(returns, theirs["returns"])
        yield apart(masked_whiten(advantages, given["mask"]), theirs["white"])


def verl_masked() -> Iterator[float]:
    for given, _, theirs in load("verl", "masked"):
        yield apart(masked_mean(**given), theirs["mean"])
        yield apart(masked_var(**given), theirs["var"])
        yield apart(masked_var(**given, unbiased=False), theirs["biased"])
        yield apart(masked_whiten(**given), theirs["white"])
        yield apart(masked_whiten(**given, shift_mean=False), theirs["unshifted"])


def verl_policy_loss() -> Iterator[float]:
    for given, options, theirs in load("verl", "policy_loss"):
        given["logprobs"].requires_grad_()
        ours = policy_loss(**given, **options)
        tokens = given["mask"].sum()
        (ours.sum / tokens).backward()
        yield apart(ours.sum / tokens, theirs["loss"])
        yield apart(given["logprobs"].grad, theirs["gradient"])
        yield apart((ours.clipped_high + ours.clipped_low) / tokens.double(), theirs["clipped"])
        yield apart(ours.dual_clipped / tokens.double(), theirs["dual_clipped"])
        yield apart(ours.kl / tokens, theirs["kl"])


def verl_value_loss() -> Iterator[float]:
    for given, options, theirs in load("verl", "value_loss"):
        given["values"].requires_grad_()
        loss, clipped = value_loss(**given, **options)
        tokens = given["mask"].sum()
        (loss / tokens).backward()
        yield apart(loss / tokens, theirs["loss"])
        yield apart(given["values"].grad, theirs["gradient"])
        yield apart(clipped / tokens.double(), theirs["clipped"])


def verl_kl() -> Iterator[float]:
    for given, options, theirs in load("verl", "kl"):
        yield apart(kl(**given, **options), theirs["kl"])


def verl_behaviour_weights() -> Iterator[float]:
    for given, options, theirs in load("verl", "behaviour_weights"):
        ours = behaviour_weights(given["logprobs"], given["reference"], cap=options["cap"])
        yield apart(ours * given["mask"], theirs["weights"])


def verl_group() -> Iterator[float]:
    for given, options, theirs in load("verl", "group"):
        rewards, groups = given["rewards"], options["groups"]
        yield apart(grpo(rewards, groups), theirs["grpo"])
        yield apart(grpo(rewards, groups, by_std=False), theirs["plain"])
        yield apart(leave_one_out(rewards, groups), theirs["leave_one_out"])


def nemo_rl_decoupled_gae() -> Iterator[float]:
    for given, options, theirs in load("nemo_rl", "decoupled_gae"):
        mask = given["mask"]
        lam = options["lam_policy"]
        if options["alpha"]:
            lam = length_adaptive_lambda(mask.sum(1), alpha=options["alpha"])
        advantages, returns = decoupled_gae(
            terminal(given["reward"], mask), given["values"], mask, lam_policy=lam, lam_critic=1.0
        )
        yield apart(advantages, theirs["advantages"])
        yield apart(returns, theirs["returns"])


def whileai_length_adaptive_gae() -> Iterator[float]:
    for given, options, theirs in load("whileai", "length_adaptive_gae"):
        mask = given["mask"]
        rewards = terminal(given["reward"], mask)
        lam = length_adaptive_lambda(mask.sum(1), alpha=options["alpha"])
        advantages, returns = decoupled_gae(rewards, given["values"], mask, lam_policy=lam)
        yield apart(advantages, theirs["advantages"])
        yield apart(explained_variance(given["values"], returns, mask), theirs["ev"])


def areal_decoupled_loss() -> Iterator[float]:
    for given, options, theirs in load("areal", "decoupled_loss"):
        given["logprobs"].requires_grad_()
        weights = behaviour_weights(given["old_logprobs"], given.pop("behave_logprobs"), **options)
        ours = policy_loss(**given, weights=weights).sum / given["mask"].sum()
        ours.backward()
        yield apart(ours, theirs["loss"])
        yield apart(given["logprobs"].grad, theirs["gradient"])


def areal_capacity() -> Iterator[float]:
    for given, _, theirs in load("areal", "capacity"):
        yield apart(admitted(**given), max(0, theirs["capacity"]))


def trl_logits() -> Iterator[float]:
    for given, _, theirs in load("trl", "logits"):
        logits = given["logits"].requires_grad_()
        ours = token_logprobs(logits, given["ids"])
        (ours * given["weights"]).sum().backward()
        yield apart(ours, theirs["logprobs"])
        yield apart(logits.grad, theirs["gradient"])
        yield apart(entropy(logits), theirs["entropy"])


def sklearn_explained_variance() -> Iterator[float]:
    for given, _, theirs in load("sklearn", "explained_variance"):
        yield apart(explained_variance(**given), theirs["ev"])


def mergekit_merge() -> Iterator[float]:
    for given, options, theirs in load("mergekit", "merge"):
        dtype = getattr(torch, options["dtype"])
        states = [{"weight": tensor.to(dtype)} for tensor in given["tensors"]]
        ((_, ours),) = merge(states, options["weights"])
        yield apart(ours, theirs["merged"])


COMPARISONS = {
    "torchrl gae": torchrl_gae,
    "torchrl returns": torchrl_returns,
    "torchrl monte_carlo_returns": torchrl_monte_carlo_returns,
    "verl gae": verl_gae,
    "verl masked": verl_masked,
    "verl policy_loss": verl_policy_loss,
    "verl value_loss": verl_value_loss,
    "verl kl": verl_kl,
    "verl behaviour_weights": verl_behaviour_weights,
    "verl group": verl_group,
    "nemo_rl decoupled_gae": nemo_rl_decoupled_gae,
    "whileai length_adaptive_gae": whileai_length_adaptive_gae,
    "areal decoupled_loss": areal_decoupled_loss,
    "areal capacity": areal_capacity,
    "trl logits": trl_logits,
    "sklearn explained_variance": sklearn_explained_variance,
    "mergekit merge": mergekit_merge,
}


def main() -> None:
    for name, compare in COMPARISONS.items():
        print(f"{name:30} {max(compare()):.1e}  (limit {ROUGHER.get(name, LIMIT):.0e})")


if __name__ == "__main__":
    main()
