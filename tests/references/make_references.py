"""Write what other projects' functions answer, for our own to be compared with in the tests.

The inputs are drawn here, the outputs are theirs, both in fp64; no line of their code is kept. Run it
where those projects are, apart from ours, because they don't fit into one environment:

    python3.11 -m venv refs
    refs/bin/pip install torch==2.13.0 numpy pydantic requests torchrl==0.14.1 tensordict==0.14.3 \\
        scikit-learn==1.9.1
    refs/bin/pip install --no-deps whileai==0.131
    refs/bin/pip download --no-deps -d wheels verl==0.9.1 areal==1.0.4 trl==1.16.0 mergekit==0.1.5
    refs/bin/python tests/references/make_references.py --wheels wheels --nemo advantage_estimator.py

verl, AReaL, TRL and mergekit bring ray, vLLM and the like: their functions are taken out of the
wheels' sources and run alone. --nemo is nemo_rl/algorithms/advantage_estimator.py of NVIDIA-NeMo/RL
at commit 00925dd1, which no package holds. Licences: torchrl MIT, scikit-learn BSD-3-Clause,
mergekit LGPL-3.0-only, all others Apache-2.0; what they compute is not covered by them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy
import torch
from parts import MASK, Case, Settings, Verl, case, drawn, in_fp64, read, take, tokens, trajectories

HERE = Path(__file__).resolve().parent
LAMBDAS = (0.0, 0.8, 0.95, 1.0)


def torchrl(_: argparse.Namespace) -> dict[str, list[Case]]:
    from torchrl.objectives.value.functional import (
        generalized_advantage_estimate,
        reward2go,
        td_lambda_return_estimate,
    )

    given = trajectories(10)
    found: dict[str, list[Case]] = {"gae": [], "monte_carlo_returns": [], "returns": []}
    # It knows no mask: each row's policy tokens go in alone.
    for gamma in (1.0, 0.97):
        for lam in LAMBDAS:
            advantages, returns = torch.zeros(MASK.shape).double(), torch.zeros(MASK.shape).double()
            for row, mask in enumerate(MASK.bool()):
                value = given["values"][row][mask][:, None]
                following = torch.cat([value[1:], torch.zeros(1, 1).double()])
                done = torch.zeros_like(value, dtype=torch.bool)
                done[-1] = True
                reward = given["rewards"][row][mask][:, None]
                advantage, _ = generalized_advantage_estimate(
                    gamma, lam, value, following, reward, done, done
                )
                advantages[row][mask] = advantage[:, 0]
                target = td_lambda_return_estimate(gamma, lam, following, reward, done, done)
                returns[row][mask] = target[:, 0]
            found["gae"].append(case(given, {"advantages": advantages}, gamma=gamma, lam=lam))
            found["returns"].append(case(given, {"returns": returns}, gamma=gamma, lam=lam))
        total = torch.zeros(MASK.shape).double()
        for row, mask in enumerate(MASK.bool()):
            reward = given["rewards"][row][mask][:, None]
            done = torch.zeros_like(reward, dtype=torch.bool)
            done[-1] = True
            total[row][mask] = reward2go(reward, done, gamma, time_dim=-2)[:, 0]
        found["monte_carlo_returns"].append(case(given, {"returns": total}, gamma=gamma))
    return found


def verl(options: argparse.Namespace) -> dict[str, list[Case]]:
    theirs = Verl(options.wheels)
    found: dict[str, list[Case]] = defaultdict(list)
    given, mask = trajectories(20), MASK.double()
    for gamma in (1.0, 0.97):
        for lam in (*LAMBDAS, torch.tensor([0.0, 0.5, 0.9, 0.95, 1.0]).double()):
            white, returns = theirs.core.compute_gae_advantage_return(
                given["rewards"], given["values"], mask, gamma, lam
            )
            # Theirs stand also where the mask is 0, and mean nothing there.
            outputs = {"white": white * mask, "returns": returns * mask}
            found["gae"].append(case(given, outputs, gamma=gamma, lam=lam))
    numbers = drawn(30, *MASK.shape)
    statistics = {
        "mean": theirs.masked.masked_mean(numbers, mask),
        "var": theirs.masked.masked_var(numbers, mask),
        "biased": theirs.masked.masked_var(numbers, mask, unbiased=False),
        "white": theirs.masked.masked_whiten(numbers, mask) * mask,
        "unshifted": theirs.masked.masked_whiten(numbers, mask, shift_mean=False) * mask,
    }
    found["masked"].append(case({"values": numbers, "mask": MASK}, statistics))

    settings = ((0.2, 0.28, 3.0), (0.2, 0.2, 1.5), (0.1, 0.4, 10.0))
    for seed, (low, high, dual) in enumerate(settings):
        given = tokens(40 + 10 * seed)
        for weights in (None, drawn(70 + seed, *MASK.shape).abs()):
            new = given["logprobs"].clone().requires_grad_()
            config = Settings(
                clip_ratio=low, clip_ratio_low=low, clip_ratio_high=high,
                clip_ratio_c=dual, global_batch_info={},
            )  # fmt: skip
            loss, measured = theirs.core.compute_policy_loss_vanilla(
                given["old_logprobs"], new, given["advantages"], mask, "token-mean", config, weights
            )
            loss.backward()
            outputs = {
                "loss": loss,
                "gradient": new.grad,
                "clipped": measured["actor/pg_clipfrac"],
                "dual_clipped": measured["actor/pg_clipfrac_lower"],
                "kl": measured["actor/ppo_kl"],
            }
            inputs = given if weights is None else given | {"weights": weights}
            found["policy_loss"].append(
                case(inputs, outputs, clip_low=low, clip_high=high, dual_clip=dual)
            )
    for clip in (0.2, 0.5, 100.0):
        values, old, returns = (
            drawn(80, *MASK.shape),
            drawn(81, *MASK.shape),
            drawn(82, *MASK.shape),
        )
        values.requires_grad_()
        loss, share = theirs.core.compute_value_loss(values, returns, old, mask, clip)
        loss.backward()
        inputs = {"values": values, "old_values": old, "returns": returns, "mask": MASK}
        outputs = {"loss": loss, "clipped": share, "gradient": values.grad}
        found["value_loss"].append(case(inputs, outputs, clip=clip))
    given = tokens(90)
    pair = {"logprobs": given["logprobs"], "reference": given["old_logprobs"]}
    for kind in ("k1", "k2", "k3"):
        outputs = {"kl": theirs.core.kl_penalty(*pair.values(), kind)}
        found["kl"].append(case(pair, outputs, kind=kind))
    ratio = pair["logprobs"] - pair["reference"]
    for cap in (1.0, 2.0):
        weights, _ = theirs.correction.compute_rollout_correction_weights(
            ratio, mask, rollout_is_threshold=cap
        )
        found["behaviour_weights"].append(
            case(pair | {"mask": MASK}, {"weights": weights}, cap=cap)
        )

    groups, rewards = ["a", "b", "a", "b", "b", "c", "c", "a"], drawn(99, 8)
    wide = torch.ones(8, 1).double()
    index = numpy.array(groups)
    outputs = {
        "grpo": theirs.core.compute_grpo_outcome_advantage(rewards[:, None] * wide, wide, index)[0],
        "plain": theirs.core.compute_grpo_outcome_advantage(
            rewards[:, None] * wide, wide, index, norm_adv_by_std_in_grpo=False
        )[0],
        "leave_one_out": theirs.core.compute_rloo_outcome_advantage(
            rewards[:, None] * wide, wide, index
        )[0],
    }
    outputs = {name: column[:, 0] for name, column in outputs.items()}
    found["group"].append(case({"rewards": rewards}, outputs, groups=groups))
    return dict(found)


def nemo(options: argparse.Namespace) -> dict[str, list[Case]]:
    name = "GeneralizedAdvantageEstimator"
    (kind,) = vars(take(in_fp64(options.nemo.read_text()), name)).values()
    loss = SimpleNamespace(
        use_kl_in_reward=False, reference_policy_kl_penalty=0.0, reference_policy_kl_type="k1"
    )
    given = trajectories(100)
    reward = drawn(102, len(MASK))
    found = []
    for alpha, lam_policy in ((0.05, None), (0.4, None), (1.5, None), (0.0, 0.95)):
        estimator = kind(
            SimpleNamespace(
                gae_lambda=0.95, gae_gamma=1.0, normalize_advantages=False, gae_lambda_value=1.0,
                gae_lambda_policy=lam_policy, length_adaptive_alpha=alpha,
            ),
            loss,
        )  # fmt: skip
        advantages, returns = estimator.compute_advantage(None, reward, MASK, given["values"])
        inputs = {"reward": reward, "values": given["values"], "mask": MASK}
        outputs = {"advantages": advantages, "returns": returns * MASK}
        found.append(case(inputs, outputs, alpha=alpha, lam_policy=lam_policy))
    return {"decoupled_gae": found}


def whileai(_: argparse.Namespace) -> dict[str, list[Case]]:
    from whileai import BPCO

    values = drawn(110, *MASK.shape).abs().clamp(max=1)
    reward = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]).double()
    logprobs = -drawn(111, *MASK.shape).abs()
    found = []
    for alpha in (0.05, 0.4, 1.5):
        update = BPCO(gae_alpha=alpha, reward_range=(0.0, 1.0)).update(
            [
                {
                    "reward": float(reward[row]),
                    "logprobs": logprobs[row].tolist(),
                    "values": values[row].tolist(),
                    "action_mask": MASK[row].tolist(),
                }
                for row in range(len(MASK))
            ]
        )
        outputs = {"advantages": update.advantages, "ev": update.stats["explained_variance"]}
        inputs = {"reward": reward, "values": values, "mask": MASK}
        found.append(case(inputs, outputs, alpha=alpha))
    return {"length_adaptive_gae": found}


def areal(options: argparse.Namespace) -> dict[str, list[Case]]:
    text = read(options.wheels, "areal", "areal/utils/functional/functional.py")
    theirs = take(
        in_fp64(text), "ppo_actor_loss_fn", "apply_rejection_sampling", "_check_bounds",
        RejectionSamplingResult=SimpleNamespace,
    )  # fmt: skip
    found: dict[str, list[Case]] = defaultdict(list)
    behave = tokens(120)["old_logprobs"]
    for seed, action in enumerate(("mask", "clamp")):
        given = tokens(130 + 10 * seed) | {"behave_logprobs": behave}
        new = given["logprobs"].clone().requires_grad_()
        sampling = SimpleNamespace(
            level="token", action=action, metric="ratio", agg="mean", lower=None, upper=2.0
        )
        loss, _ = theirs.ppo_actor_loss_fn(
            new, given["old_logprobs"], behave, given["advantages"], 0.2, MASK.bool(),
            eps_clip_higher=0.28, c_clip=3.0, rejection_sampling=sampling,
        )  # fmt: skip
        loss.backward()
        outputs = {"loss": loss, "gradient": new.grad}
        mode = {"mask": "mask", "clamp": "truncate"}[action]
        found["decoupled_loss"].append(case(given, outputs, cap=2.0, mode=mode))

    counters = SimpleNamespace(running=0, accepted=0)
    text = read(options.wheels, "areal", "areal/infra/staleness_manager.py")
    (manager,) = vars(
        take(
            text, "StalenessManager",
            Lock=__import__("threading").Lock, RolloutStat=lambda: counters, Protocol=object,
        )
    ).values()  # fmt: skip
    generator = numpy.random.default_rng(0)
    for _ in range(60):
        drawn_ones = {
            "running": int(generator.integers(0, 40)),
            "accepted": int(generator.integers(0, 200)),
            "version": int(generator.integers(0, 12)),
            "concurrency": int(generator.integers(1, 64)),
            "batch": int(generator.integers(1, 32)),
            "staleness": int(generator.integers(0, 8)),
        }
        counters.running, counters.accepted = drawn_ones["running"], drawn_ones["accepted"]
        now = drawn_ones["version"]
        capacity = manager(
            SimpleNamespace(get_version=lambda now=now: now),
            drawn_ones["concurrency"], drawn_ones["batch"], drawn_ones["staleness"],
        ).get_capacity()  # fmt: skip
        found["capacity"].append(case(drawn_ones, {"capacity": capacity}))
    return dict(found)


def trl(options: argparse.Namespace) -> dict[str, list[Case]]:
    text = read(options.wheels, "trl", "trl/trainer/utils.py")
    theirs = take(
        text, "selective_log_softmax", "entropy_from_logits",
        is_triton_available=lambda: False, F=torch.nn.functional,
    )  # fmt: skip
    logits = drawn(150, 3, 7, 23, scale=4.0).requires_grad_()
    ids = torch.randint(23, (3, 7), generator=torch.Generator().manual_seed(151))
    chosen = theirs.selective_log_softmax(logits, ids)
    weights = drawn(152, 3, 7)
    (chosen * weights).sum().backward()
    outputs = {
        "logprobs": chosen,
        "gradient": logits.grad,
        "entropy": theirs.entropy_from_logits(logits),
    }
    return {"logits": [case({"logits": logits, "ids": ids, "weights": weights}, outputs)]}


def sklearn(_: argparse.Namespace) -> dict[str, list[Case]]:
    from sklearn.metrics import explained_variance_score

    found = []
    for seed, noise in enumerate((0.0, 0.1, 1.0, 3.0)):
        returns = drawn(160 + seed, *MASK.shape)
        values = returns + noise * drawn(170 + seed, *MASK.shape) + 0.5
        inside = MASK.bool()
        score = explained_variance_score(returns[inside].numpy(), values[inside].numpy())
        inputs = {"values": values, "returns": returns, "mask": MASK}
        found.append(case(inputs, {"ev": float(score)}))
    return {"explained_variance": found}


def mergekit(options: argparse.Namespace) -> dict[str, list[Case]]:
    text = read(options.wheels, "mergekit", "mergekit/merge_methods/linear.py")
    from typing import Annotated

    theirs = take(text, "linear_merge", Annotated=Annotated)
    weights = [0.5, 0.3, 0.2]
    found = []
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        models = [drawn(180 + seed, 4, 6).to(dtype) for seed in range(3)]
        merged = theirs.linear_merge(
            SimpleNamespace(tensors=[tensor[None] for tensor in models]),
            torch.tensor([weights], dtype=torch.float64),
        )[0]
        name = str(dtype).removeprefix("torch.")
        found.append(case({"tensors": models}, {"merged": merged}, weights=weights, dtype=name))
    return {"merge": found}


PROJECTS = {
    "torchrl": ("torchrl 0.14.1, MIT", torchrl),
    "verl": ("verl 0.9.1, Apache-2.0", verl),
    "nemo_rl": ("NVIDIA-NeMo/RL 00925dd1, Apache-2.0", nemo),
    "whileai": ("whileai 0.131, Apache-2.0", whileai),
    "areal": ("areal 1.0.4, Apache-2.0", areal),
    "trl": ("trl 1.16.0, Apache-2.0", trl),
    "sklearn": ("scikit-learn 1.9.1, BSD-3-Clause", sklearn),
    "mergekit": ("mergekit 0.1.5, LGPL-3.0-only", mergekit),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the four wheels")
    parser.add_argument("--nemo", type=Path, required=True, help="NeMo-RL's advantage_estimator.py")
    parser.add_argument("--only", choices=sorted(PROJECTS), help="one project alone")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)  # else a number times an int tensor is fp32 in torchrl
    for name, (source, make) in PROJECTS.items():
        if options.only in (None, name):
            record = {"source": source, "cases": make(options)}
            path = HERE / f"{name}.json"
            path.write_text(json.dumps(record, separators=(",", ":")) + "\n")
            counts = {function: len(cases) for function, cases in record["cases"].items()}
            print(f"{path.name}: {path.stat().st_size} bytes, {counts}")


if __name__ == "__main__":
    main()
