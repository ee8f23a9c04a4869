"""What an episode is worth, token by token: the same for value pretraining and for PPO."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from training.algos.shaping import Shaped, Shaping, on_last_tokens, shape
from training.trainers.settings import Settings
from training.trainers.token_rows import Layout

SUCCESS = 0.5
"""An episode with this reward or more counts as a success: outcomes are 0 or 1 almost everywhere."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rewarded(Settings):
    """How episodes are rewarded; a critic and the policy that uses it need the same values."""

    gamma: float = 1.0
    format_reward: float = 0.1
    length_penalty: float = 0.0
    length_budget: int = 10

    def shaping(self) -> Shaping:
        return Shaping(
            unreadable_cost=self.format_reward,
            long_cost=self.length_penalty,
            long_from=self.length_budget,
            long_until=2 * self.length_budget,
            signal_weight=1.0,
        )


def shaped(layout: Layout, config: Rewarded) -> list[Shaped]:
    """Return the parts of each episode's reward."""
    by = config.shaping()
    return [
        shape(
            episode.reward,
            readable=[step.readable for step in episode.steps],
            signals=[step.reward for step in episode.steps],
            stopped=False,  # only a cost of early ends asks, and there is none
            by=by,
        )
        for episode in layout.episodes
    ]


def token_rewards(layout: Layout, rewards: list[Shaped]) -> Tensor:
    """Return the flat vector (tokens,): each step's reward on its last token, the outcome's too."""
    parts = [
        on_last_tokens(one.steps, lengths)
        for one, lengths in zip(rewards, layout.lengths(), strict=True)
    ]
    return torch.cat(parts) if parts else torch.zeros(0)
