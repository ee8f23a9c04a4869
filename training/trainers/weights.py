"""The full weights of a checkpoint, tensor by tensor: an adapter is added to its base as it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from agent.serving.checkpoint import Files
from agent.serving.manifest import CheckpointError, read_json

INDEX = "model.safetensors.index.json"
SHARD_BYTES = 4 * 2**30
ODD = ("use_dora", "use_rslora", "fan_in_fan_out", "rank_pattern", "alpha_pattern",
       "modules_to_save", "lora_bias")  # fmt: skip
"""Settings of an adapter under which its weights are not alpha/r B A."""


class Weights(Mapping[str, Tensor]):
    """Name -> tensor of a checkpoint's full weights; one tensor is in memory while it is asked for.

    Of a LoRA checkpoint W + (alpha / r) B A (LoRA, arXiv 2106.09685, section 4.1), in fp32. Raises
    CheckpointError for an adapter of another kind.
    """

    def __init__(self, files: Files) -> None:
        self._places = _places(files.weights)
        self._adapter: dict[str, str] = {}
        if files.adapter is not None:
            settings = read_json(files.adapter / "adapter_config.json")
            if odd := [name for name in ODD if settings.get(name)]:
                raise CheckpointError(f"{files.adapter}: an adapter with {odd[0]} can't be added")
            self._scale = settings["lora_alpha"] / settings["r"]
            self._adapter_file = files.adapter / "adapter_model.safetensors"
            with safe_open(self._adapter_file, "pt") as file:
                for key in list(file.keys()):
                    module = key.removeprefix("base_model.model.").rpartition(".lora_")[0]
                    self._adapter[f"{module}.weight"] = key.rpartition(".lora_")[0]
            if lost := sorted(set(self._adapter) - set(self._places)):
                raise CheckpointError(f"{files.adapter}: its base has no {lost[0]}")

    def __getitem__(self, name: str) -> Tensor:
        with safe_open(self._places[name], "pt") as file:
            tensor: Tensor = file.get_tensor(name)
        if stem := self._adapter.get(name):
            with safe_open(self._adapter_file, "pt") as file:
                a = file.get_tensor(f"{stem}.lora_A.weight").float()
                b = file.get_tensor(f"{stem}.lora_B.weight").float()
            tensor = tensor.float() + self._scale * (b @ a)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def save(tensors: Iterator[tuple[str, Tensor]], folder: Path, *, shard: int = SHARD_BYTES) -> None:
    """Write weights as transformers reads them: one file, or several and an index.

    At most `shard` bytes (and one tensor) are in memory.
    """
    waiting: dict[str, Tensor] = {}
    parts: list[list[str]] = []
    size = total = 0

    def write() -> None:
        save_file(waiting, folder / f"part-{len(parts)}", metadata={"format": "pt"})
        parts.append(list(waiting))
        waiting.clear()

    for name, tensor in tensors:
        if waiting and size + tensor.nbytes > shard:
            write()
            size = 0
        waiting[name] = tensor.contiguous()
        size += tensor.nbytes
        total += tensor.nbytes
    write()
    if len(parts) == 1:
        (folder / "part-0").rename(folder / "model.safetensors")
        return
    where: dict[str, str] = {}
    for number, names in enumerate(parts):
        file = f"model-{number + 1:05}-of-{len(parts):05}.safetensors"
        (folder / f"part-{number}").rename(folder / file)
        where |= dict.fromkeys(names, file)
    index: dict[str, Any] = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def spread(merged: Tensor, tensors: list[Tensor], weights: list[float]) -> tuple[float, float]:
    """Return (sum of alpha_k |theta_k - theta|^2, |theta|^2) of one tensor."""
    centre = merged.double()
    apart = sum(
        weight * float((tensor.double() - centre).square().sum())
        for tensor, weight in zip(tensors, weights, strict=True)
    )
    return apart, float(centre.square().sum())


def _places(folder: Path) -> dict[str, Path]:
    """Return the file of each tensor."""
    if (folder / INDEX).exists():
        where = read_json(folder / INDEX)["weight_map"]
        return {name: folder / file for name, file in sorted(where.items())}
    file = folder / "model.safetensors"
    if not file.exists():
        raise CheckpointError(f"{folder} holds no model.safetensors")
    with safe_open(file, "pt") as opened:
        return dict.fromkeys(sorted(opened.keys()), file)
