"""Advantages and returns over the tokens that the policy wrote, and over no others.

A row of (n, t) is a trajectory of t tokens. Its mask is 1 on policy tokens; observation tokens and
padding, on either side, are 0. The state after the last policy token of a turn is the first policy
token of the next turn, so whatever lies between changes nothing. Inside, the policy tokens of a row
are moved together, worked on, and put back.

Sources: GAE, arXiv 1506.02438, eq. 16; decoupled GAE, VC-PPO, arXiv 2503.01491, section 3.3;
length-adaptive GAE, VAPO, arXiv 2504.05118, eq. 4-5; all of them in UI-TARS-2, arXiv 2509.02544,
section 2.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def _places(mask: Tensor) -> tuple[Tensor, int]:
    """Return for each token its number among the row's policy tokens, and the most tokens of a row."""
    counts = mask.long().cumsum(1)
    longest = int(counts[:, -1].max()) if counts.numel() else 0
    # One column more than needed: where everything goes that is no policy token.
    return torch.where(mask, counts - 1, longest), longest


def _pack(tokens: Tensor, places: Tensor, longest: int) -> Tensor:
    """Return (n, longest): each row's policy tokens from the left, 0 after them."""
    packed = tokens.new_zeros(len(tokens), longest + 1).scatter(1, places, tokens)
    return packed[:, :longest]


def _unpack(packed: Tensor, places: Tensor) -> Tensor:
    """Return (n, t): what _pack moved is where it was, and 0 elsewhere."""
    return torch.cat([packed, packed.new_zeros(len(packed), 1)], 1).gather(1, places)


def _discounted(deltas: Tensor, factor: Tensor) -> Tensor:
    """Return x_t = deltas_t + factor * x_(t+1) for (n, t) deltas and one factor per row (n,).

    Each round doubles how far a token sees: log2(t) rounds over whole rows, not t over columns.
    """
    seen, weight = deltas.clone(), factor[:, None]
    reach = 1
    while reach < seen.shape[1]:
        seen[:, :-reach] += weight * seen[:, reach:]
        reach, weight = 2 * reach, weight * weight
    return seen


def _per_row(value: float | Tensor, like: Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device).expand(len(like))


@torch.no_grad()
def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float = 1.0, lam: float | Tensor
) -> Tensor:
    """Return the advantages (n, t), 0 outside the mask.

    delta_t = r_t + gamma V_(t+1) - V_t and A_t = delta_t + gamma lam A_(t+1), where t + 1 is the
    next policy token; after the last one both are 0. `lam` is one number or one per row (n,).
    Rewards and values outside the mask are not looked at.
    """
    places, longest = _places(mask.bool())
    packed = _pack(values, places, longest)
    following = torch.cat([packed[:, 1:], packed.new_zeros(len(packed), 1)], 1)[:, :longest]
    deltas = _pack(rewards.to(values.dtype), places, longest) + gamma * following - packed
    return _unpack(_discounted(deltas, gamma * _per_row(lam, values)), places)


def decoupled_gae(
    rewards: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    gamma: float = 1.0,
    lam_policy: float | Tensor,
    lam_critic: float | Tensor = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return (advantages, returns), each (n, t) and 0 outside the mask.

    The advantages are GAE with `lam_policy`, the returns GAE with `lam_critic` plus V: the critic's
    target. With `lam_critic` 1 that is the Monte-Carlo return, whatever V says.
    """
    advantages = gae(rewards, values, mask, gamma=gamma, lam=lam_policy)
    returns = gae(rewards, values, mask, gamma=gamma, lam=lam_critic) + values
    return advantages, torch.where(mask.bool(), returns, returns.new_zeros(())).detach()


@torch.no_grad()
def monte_carlo_returns(rewards: Tensor, mask: Tensor, *, gamma: float = 1.0) -> Tensor:
    """Return (n, t): the discounted sum of a row's rewards from each policy token on; 0 elsewhere."""
    places, longest = _places(mask.bool())
    packed = _pack(rewards, places, longest)
    return _unpack(_discounted(packed, _per_row(gamma, rewards)), places)


def length_adaptive_lambda(lengths: Tensor, *, alpha: float = 0.05) -> Tensor:
    """Return 1 - 1/(alpha l) for lengths (n,) in policy tokens of whole trajectories, in fp64.

    VAPO eq. 5: the weights lam^t add up to about alpha l. Below 1/alpha tokens the formula is
    negative; it is held at 0 there, which the paper doesn't say (NVIDIA-NeMo/RL does the same).
    """
    if alpha <= 0:
        raise ValueError(f"alpha is {alpha:g}: it must be above 0")
    return 1 - 1 / (alpha * lengths.double()).clamp(min=1)


def half_life(lam: float | Tensor) -> Tensor:
    """Return after how many tokens an error weighs half as much: ln(1/2) / ln(lam), in fp64.

    0 for lam 0, inf for lam 1.
    """
    return math.log(2) / torch.as_tensor(lam, dtype=torch.float64).log().abs()


def reaches_first(lam: float | Tensor, lengths: Tensor) -> Tensor:
    """Return the weight lam^(l-1) of a terminal reward in the advantage of the first of l tokens.

    With length-adaptive lam it is about e^(-1/alpha): 2e-9 at alpha .05, .08 at .4. What it leaves
    out the first tokens learn only through the critic.
    """
    return torch.as_tensor(lam, dtype=torch.float64) ** (lengths.double() - 1)


def terminal(reward: Tensor, mask: Tensor) -> Tensor:
    """Return (n, t) rewards: `reward` (n,) on each row's last policy token, 0 elsewhere.

    A row without a policy token has no place for its reward and stays 0.
    """
    mask = mask.bool()
    after = mask.long().flip(1).cumsum(1).flip(1)
    return torch.where(mask & (after == 1), reward[:, None], reward.new_zeros(()))


def join(steps: Sequence[Tensor]) -> Tensor:
    """Return the policy tokens of an episode's steps, each (t_k,), as one row (sum of t_k,)."""
    return torch.cat(list(steps))


def split(joined: Tensor, steps: Sequence[Tensor]) -> list[Tensor]:
    """Return `joined` cut where the steps end: the inverse of join."""
    return list(joined.split([len(step) for step in steps]))
