"""What advantages and losses of a PPO update cost: `python -m benchmarks.losses`.

Beside verl 0.9.1's functions on the same tensors in the same run, by turns, where its wheel is given
(`pip download --no-deps verl==0.9.1`, then --verl FOLDER): they are taken out of the wheel and run
alone. Each round makes GAE with whitening and returns, then the policy loss and the value loss with
their gradients. Prints one JSON object; tokens are policy tokens, `agree` is the largest difference.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from training.algos.gae import gae, terminal
from training.algos.masked import masked_whiten
from training.algos.policy import policy_loss
from training.algos.value import value_loss

LAM = 0.95
Batch = dict[str, Tensor]
Answers = list[Tensor]
Part = Callable[[Batch], Answers]


def drawn(rows: int, width: int, share: float, device: str) -> Batch:
    """Return trajectories of turns: runs of observation tokens between runs of policy tokens."""
    generator = torch.Generator().manual_seed(0)
    turns = torch.rand(rows, width // 32 + 1, generator=generator) < share
    mask = turns.repeat_interleave(32, 1)[:, :width]
    noise = torch.randn(5, rows, width, generator=generator)
    reward = (torch.rand(rows, generator=generator) < 0.5).float()
    new = -noise[0].abs()
    batch = {
        "mask": mask.float(),
        "rewards": terminal(reward, mask),
        "new": new,
        "old": new + 0.1 * noise[1],
        "values": noise[2],
        "before": noise[2] + 0.1 * noise[3],
        "advantages": noise[4],
        "returns": terminal(reward, mask).flip(1).cumsum(1).flip(1),
    }
    return {name: tensor.to(device) for name, tensor in batch.items()}


def ours() -> dict[str, Part]:
    def advantages(batch: Batch) -> Answers:
        found = gae(batch["rewards"], batch["before"], batch["mask"], lam=LAM)
        return [masked_whiten(found, batch["mask"]), (found + batch["before"]) * batch["mask"]]

    def policy(batch: Batch) -> Answers:
        new = batch["new"].requires_grad_()
        done = policy_loss(new, batch["old"], batch["advantages"], batch["mask"])
        loss = done.sum / batch["mask"].sum()
        return [loss.detach(), *torch.autograd.grad(loss, new)]

    def value(batch: Batch) -> Answers:
        values = batch["values"].requires_grad_()
        total, _ = value_loss(values, batch["before"], batch["returns"], batch["mask"], clip=0.2)
        loss = total / batch["mask"].sum()
        return [loss.detach(), *torch.autograd.grad(loss, values)]

    return {"gae": advantages, "policy_loss": policy, "value_loss": value}


def verls(wheels: Path) -> dict[str, Part]:
    from tests.references.parts import Settings, Verl

    core = Verl(wheels).core
    config = Settings(
        clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=3.0,
        global_batch_info={},
    )  # fmt: skip

    def advantages(batch: Batch) -> Answers:
        white, returns = core.compute_gae_advantage_return(
            batch["rewards"], batch["before"], batch["mask"], 1.0, LAM
        )
        return [white * batch["mask"], returns * batch["mask"]]

    def policy(batch: Batch) -> Answers:
        new = batch["new"].requires_grad_()
        loss, _ = core.compute_policy_loss_vanilla(
            batch["old"], new, batch["advantages"], batch["mask"], "token-mean", config
        )
        return [loss.detach(), *torch.autograd.grad(loss, new)]

    def value(batch: Batch) -> Answers:
        values = batch["values"].requires_grad_()
        loss, _ = core.compute_value_loss(
            values, batch["returns"], batch["before"], batch["mask"], 0.2
        )
        return [loss.detach(), *torch.autograd.grad(loss, values)]

    return {"gae": advantages, "policy_loss": policy, "value_loss": value}


def seconds(part: Part, batch: Batch) -> tuple[float, Answers]:
    began = time.perf_counter()
    answers = part(batch)
    if answers[0].is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - began, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verl", type=Path, help="folder with verl's wheel")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--width", type=int, default=4096, help="tokens of a trajectory")
    parser.add_argument("--share", type=float, default=0.5, help="of the policy's tokens")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    batch = drawn(options.rows, options.width, options.share, options.device)
    tokens = int(batch["mask"].sum())
    sides = {"ours": ours()} | ({"verl": verls(options.verl)} if options.verl else {})
    report: dict[str, object] = {
        "rows": options.rows,
        "width": options.width,
        "policy_tokens": tokens,
        "device": options.device,
        "threads": options.threads,
    }
    if not options.verl:
        report["verl"] = "no wheel given: see --help"
    totals = dict.fromkeys(sides, 0.0)
    for name in ours():
        times: dict[str, list[float]] = {side: [] for side in sides}
        answers: dict[str, Answers] = {}
        for _ in range(options.repeat + 1):
            for side, parts in sides.items():
                took, answers[side] = seconds(parts[name], batch)
                times[side].append(took)
        # The first round warms caches.
        medians = {side: statistics.median(taken[1:]) for side, taken in times.items()}
        figures: dict[str, object] = {
            f"{side}_tokens_per_s": round(tokens / median) for side, median in medians.items()
        }
        if "verl" in sides:
            figures["ratio"] = round(medians["verl"] / medians["ours"], 2)
            pairs = zip(answers["ours"], answers["verl"], strict=True)
            figures["agree"] = max(float((a - b).abs().max()) for a, b in pairs)
        report[name] = figures
        for side, median in medians.items():
            totals[side] += median
    whole: dict[str, object] = {
        f"{side}_tokens_per_s": round(tokens / total) for side, total in totals.items()
    }
    if "verl" in sides:
        whole["ratio"] = round(totals["verl"] / totals["ours"], 2)
    report["update"] = whole
    report["load_average"] = Path("/proc/loadavg").read_text().split()[0]
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
