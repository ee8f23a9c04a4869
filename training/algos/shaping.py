"""The reward of an episode: its outcome, and what is added for format, length and progress.

UI-TARS-2 (arXiv 2509.02544, section 2.5) rewards mostly the outcome, and in some scenarios adds a
format reward and a length penalty; it prints no coefficients. Here all of them are 0 unless given,
and each part is returned apart, so that a run can show what it was rewarded for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.algos.policy import kl


@dataclass(frozen=True, slots=True)
class Shaping:
    """The coefficients. Costs are 0 or more and are taken off; lengths count steps."""

    signed: bool = False
    """Scale the outcome from [0, 1] to [-1, 1], as NVIDIA-NeMo/RL's PPO does."""
    unreadable_cost: float = 0.0
    """Taken off at each step whose reply could not be read."""
    long_cost: float = 0.0
    """Taken off in full at `long_until` steps, nothing up to `long_from`, in proportion between:
    DAPO's soft overlong punishment (arXiv 2503.14476, section 3.4), over steps."""
    long_from: int = 0
    long_until: int = 0
    early_cost: float = 0.0
    """Taken off a failed episode that stopped by itself: in full at 0 steps, nothing from
    `early_until` on. A quick success costs nothing."""
    early_until: int = 0
    signal_weight: float = 0.0
    """Of the intermediate signals that a task gives at its steps."""

    def __post_init__(self) -> None:
        for name in ("unreadable_cost", "long_cost", "early_cost"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is below 0: a cost is 0 or more")
        if self.long_cost and not 0 <= self.long_from < self.long_until:
            raise ValueError("long_cost needs long_from below long_until")
        if self.early_cost and self.early_until < 1:
            raise ValueError("early_cost needs early_until of 1 step or more")


@dataclass(frozen=True, slots=True)
class Shaped:
    """The parts of an episode's reward; `format` and `signals` have one entry per step."""

    outcome: float
    length: float
    format: tuple[float, ...]
    signals: tuple[float, ...]

    @property
    def steps(self) -> list[float]:
        """The reward of each step: its format and signal; the last has outcome and length too."""
        rewards = [a + b for a, b in zip(self.format, self.signals, strict=True)]
        rewards[-1:] = [rewards[-1] + self.outcome + self.length] if rewards else []
        return rewards

    @property
    def total(self) -> float:
        return self.outcome + self.length + sum(self.format) + sum(self.signals)


def shape(
    reward: float,
    *,
    readable: Sequence[bool],
    signals: Sequence[float],
    stopped: bool,
    by: Shaping,
) -> Shaped:
    """Return the parts of the reward of an episode with outcome `reward` in [0, 1].

    `readable` and `signals` have one entry per step; `stopped`: the policy said that it was done,
    rather than running out of steps.
    """
    steps = len(readable)
    length = 0.0
    if by.long_cost:
        share = (steps - by.long_from) / (by.long_until - by.long_from)
        length -= by.long_cost * min(1.0, max(0.0, share))
    if by.early_cost and stopped and reward <= 0:
        length -= by.early_cost * max(0.0, 1 - steps / by.early_until)
    return Shaped(
        outcome=2 * reward - 1 if by.signed else reward,
        length=length,
        format=tuple(0.0 if fine else -by.unreadable_cost for fine in readable),
        signals=tuple(by.signal_weight * signal for signal in signals),
    )


def on_last_tokens(steps: Sequence[float], lengths: Sequence[int]) -> Tensor:
    """Return fp32 token rewards (sum of lengths,): each step's reward on its last policy token.

    A step without a policy token hands its reward to the step before it, the first ones to the
    first token there is, so that the sum is kept; without any token the answer is empty.
    """
    rewards = torch.zeros(sum(lengths))
    end = 0
    for reward, length in zip(steps, lengths, strict=True):
        end += length
        if len(rewards):
            rewards[max(0, end - 1)] += reward
    return rewards


def kl_reward(logprobs: Tensor, reference: Tensor, mask: Tensor, *, beta: float) -> Tensor:
    """Return -beta (log pi - log pi_ref) per token, without gradient, 0 outside the mask."""
    cost = kl(logprobs, reference, kind="k1").detach()
    return torch.where(mask.bool(), -beta * cost, cost.new_zeros(()))
