"""Advantages by comparison within a group: several attempts at the same task, and no critic.

Rewards and advantages are (n,), one per trajectory; `groups` names each trajectory's group. The
advantage of a trajectory holds for all its policy tokens. A group of one has nothing to be compared
with: its advantage is 0 (verl gives it the bare reward).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor


def _members(groups: Sequence[Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        found.setdefault(group, []).append(place)
    return [places for places in found.values() if len(places) > 1]


def grpo(rewards: Tensor, groups: Sequence[Hashable], *, by_std: bool = True) -> Tensor:
    """Return r - mean of the group, over its standard deviation + 1e-6 where `by_std`.

    GRPO, arXiv 2402.03300, section 4.1.2; without the deviation Dr. GRPO, arXiv 2503.20783, which
    doesn't favour tasks that nearly always succeed or fail.
    """
    advantages = torch.zeros_like(rewards)
    for places in _members(groups):
        own = rewards[places]
        scale = own.std() + 1e-6 if by_std else 1.0
        advantages[places] = (own - own.mean()) / scale
    return advantages


def leave_one_out(rewards: Tensor, groups: Sequence[Hashable]) -> Tensor:
    """Return r - mean of the group's others: REINFORCE with an unbiased baseline.

    RLOO, arXiv 2402.14740.
    """
    advantages = torch.zeros_like(rewards)
    for places in _members(groups):
        own = rewards[places]
        advantages[places] = (own - own.mean()) * len(places) / (len(places) - 1)
    return advantages
