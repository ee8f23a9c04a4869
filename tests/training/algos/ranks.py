"""One update's loss over a share of a batch, then summed over processes.

`python -m tests.training.algos.ranks STORE RANK RANKS` is one process; the first prints the result.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from training.algos.gae import decoupled_gae, length_adaptive_lambda, terminal
from training.algos.masked import Reduce, masked_whiten
from training.algos.policy import policy_loss, positive_lm_loss, token_logprobs
from training.algos.value import value_loss

ROWS, WIDTH, WORDS, HIDDEN = 6, 12, 9, 4
MU = 0.1


def update(rows: slice, reduce: Reduce) -> dict[str, list[float]]:
    """Return the loss and the gradients of the whole batch, of which `rows` are computed here."""
    generator = torch.Generator().manual_seed(0)
    seen = torch.randn(ROWS, WIDTH, HIDDEN, generator=generator, dtype=torch.float64)[rows]
    ids = torch.randint(WORDS, (ROWS, WIDTH), generator=generator)[rows]
    mask = (torch.rand(ROWS, WIDTH, generator=generator) < 0.6)[rows]
    reward = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0], dtype=torch.float64)[rows]
    old = -torch.rand(ROWS, WIDTH, generator=generator, dtype=torch.float64)[rows]
    head = torch.randn(HIDDEN, WORDS, generator=generator, dtype=torch.float64).requires_grad_()
    critic = torch.randn(HIDDEN, generator=generator, dtype=torch.float64).requires_grad_()

    values = seen @ critic
    before = values.detach()
    lam = length_adaptive_lambda(mask.sum(1), alpha=1.5)
    advantages, returns = decoupled_gae(terminal(reward, mask), before, mask, lam_policy=lam)
    advantages = masked_whiten(advantages, mask, reduce=reduce)
    logprobs = token_logprobs(seen @ head, ids)
    policy = policy_loss(logprobs, old, advantages, mask)
    nll, positive = positive_lm_loss(logprobs, mask, reward > 0)
    error, _ = value_loss(values, before + 0.1, returns, mask, clip=0.2)
    counts = reduce(torch.stack([mask.sum(), positive]).double())
    loss = (policy.sum + error) / counts[0] + MU * nll / counts[1]
    loss.backward()
    found: dict[str, Tensor] = {"loss": loss.detach(), "head": head.grad, "critic": critic.grad}
    return {name: reduce(tensor).flatten().tolist() for name, tensor in found.items()}


def main(store: str, rank: int, ranks: int) -> None:
    torch.set_num_threads(1)
    limit = timedelta(seconds=60)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=limit
    )

    def reduce(tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        dist.all_reduce(tensor)
        return tensor

    # Uneven on purpose: the first process has one row, the second all others.
    found = update(slice(0, 1) if rank == 0 else slice(1, ROWS), reduce)
    if rank == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
