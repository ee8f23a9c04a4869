"""Functions taken out of the sources of packages; inputs and records of the fixtures."""

from __future__ import annotations
import __future__

import ast
import math
import zipfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import torch
from torch import Tensor

Case = dict[str, Any]


# -- taking functions out of sources -----------------------------------------------------------


def take(source: str, *names: str, **known: Any) -> SimpleNamespace:
    """Return the functions and classes `names` of a module's text, run without its imports."""
    wanted = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names
    ]
    assert {node.name for node in wanted} == set(names), (names, [n.name for n in wanted])
    for node in wanted:
        node.decorator_list = []
    flags = __future__.annotations.compiler_flag
    code = compile(ast.Module(wanted, []), "<taken>", "exec", flags=flags, dont_inherit=True)
    space: dict[str, Any] = {"torch": torch, "np": numpy, "defaultdict": defaultdict, **known}
    exec(code, space)
    return SimpleNamespace(**{name: space[name] for name in names})


def read(wheels: Path, project: str, path: str) -> str:
    (wheel,) = wheels.glob(f"{project}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(path).decode()


def in_fp64(source: str) -> str:
    """Return a source that computes in fp64 where it asks for fp32."""
    return source.replace(".float()", ".double()")


class Verl:
    """verl's functions, with what they find around them."""

    def __init__(self, wheels: Path) -> None:
        text = read(wheels, "verl", "verl/utils/torch_functional.py")
        names = ("masked_sum", "masked_mean", "masked_var", "masked_whiten", "clip_by_value")
        self.masked = take(text, *names)
        core = read(wheels, "verl", "verl/trainer/ppo/core_algos.py")
        self.core = take(
            core,
            "compute_gae_advantage_return",
            "compute_grpo_outcome_advantage",
            "compute_rloo_outcome_advantage",
            "agg_loss",
            "compute_policy_loss_vanilla",
            "compute_value_loss",
            "kl_penalty",
            "kl_penalty_forward",
            verl_F=self.masked,
            AlgoConfig=type("AlgoConfig", (), {}),
        )
        correction = read(wheels, "verl", "verl/trainer/ppo/rollout_corr_helper.py")
        self.correction = take(
            correction,
            "compute_rollout_correction_weights",
            "_parse_rollout_is_threshold",
            verl_F=self.masked,
            SAFETY_BOUND=20.0,
            compute_is_metrics=lambda **_: {},
            math=math,
        )


class Settings(SimpleNamespace):
    """A configuration as verl reads it."""

    def get(self, name: str, default: Any) -> Any:
        return getattr(self, name, default)


# -- inputs ------------------------------------------------------------------------------------


def drawn(seed: int, *shape: int, scale: float = 1.0) -> Tensor:
    """Return fp64 numbers that fp32 holds exactly, so that a function in fp32 sees the same."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).float().double()


MASK = torch.tensor(
    [
        [1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0],  # three turns, padding on the right
        [0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1],  # padding on the left
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],  # one token
        [0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0],
    ]
)


def trajectories(seed: int) -> dict[str, Tensor]:
    return {
        "rewards": drawn(seed, *MASK.shape) * MASK,
        "values": drawn(seed + 1, *MASK.shape),
        "mask": MASK,
    }


def tokens(seed: int) -> dict[str, Tensor]:
    """Return log-probabilities whose ratios reach far beyond every clip."""
    new = -drawn(seed, *MASK.shape).abs()
    return {
        "logprobs": new,
        "old_logprobs": new + drawn(seed + 1, *MASK.shape, scale=0.6),
        "advantages": drawn(seed + 2, *MASK.shape),
        "mask": MASK,
    }


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().double().tolist() if value.is_floating_point() else value.tolist()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def case(inputs: Case, outputs: Case, **options: Any) -> Case:
    return {"inputs": plain(inputs), "options": plain(options), "outputs": plain(outputs)}
