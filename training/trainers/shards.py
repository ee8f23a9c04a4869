"""Weights that no process holds whole: FSDP2, `torch.distributed.fsdp.fully_shard`.

Each process keeps its part of every weight, of its gradient and of the optimiser's moments; a layer
is put together for as long as it computes (ZeRO-3, arXiv 1910.02054). Checkpoints and states are
written whole by the first process, in the very format of one process, so that a run may go on with
another number of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


class Shards:
    """fp32 shards behind a model whose layers compute in `dtype`; the interface of Masters."""

    def __init__(self, model: Any, dtype: torch.dtype, device: torch.device, world: int) -> None:
        self.model, self.dtype = model, dtype
        for p in model.parameters():
            # What is not trained needs no second precision.
            p.data = p.data.float() if p.requires_grad else p.data.to(dtype)
        mesh = init_device_mesh(device.type, (world,))
        policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
        whole = set(model._no_split_modules)
        for module in list(model.modules()):
            if type(module).__name__ in whole:
                fully_shard(module, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names = [name for name, _ in named]
        self.full: list[torch.Tensor] = [p for _, p in named]
        self._main = mesh.get_rank() == 0

    def take_gradients(self) -> None:
        """Nothing to do: backward has averaged them into the shards."""

    def give_weights(self) -> None:
        """Nothing to do: a layer is cast when it is put together."""

    def state(self) -> dict[str, torch.Tensor]:
        """Return the whole weights on the first process, {} elsewhere; every process calls it."""
        return self._gather(dict(zip(self.names, self.full, strict=True)))

    @torch.no_grad()
    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        for name, p in zip(self.names, self.full, strict=True):
            p.copy_(_part(state[name], p))

    def optimiser_state(self, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        """As `state`, for the optimiser."""
        record = optimiser.state_dict()
        gathered = {n: self._gather(values) for n, values in record["state"].items()}
        return {**record, "state": gathered} if self._main else {}

    def restore_optimiser(self, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        parts = {
            n: {
                key: _part(value, self.full[n]) if value.shape == self.full[n].shape else value
                for key, value in values.items()
            }
            for n, values in state["state"].items()
        }
        optimiser.load_state_dict({**state, "state": parts})

    def to_save(self) -> dict[str, torch.Tensor]:
        """Return what save_pretrained is to write, on the first process; every process calls it."""
        adapter, wanted = hasattr(self.model, "peft_config"), set(self.names)
        kept: dict[str, torch.Tensor] = {}
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            tied = any(tensor is other for other in kept.values())
            if not tied and (name in wanted or not adapter):
                kept[name] = tensor
        return {name: t.to(self.dtype) for name, t in self._gather(kept).items()}

    def _gather(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        result = {}
        for name, tensor in tensors.items():
            whole = tensor.detach()
            whole = whole.full_tensor() if isinstance(whole, DTensor) else whole
            if self._main:
                result[name] = whole.cpu()
        return result


def _part(whole: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return this process's part of a tensor that every process has whole."""
    assert isinstance(like, DTensor)
    return distribute_tensor(
        whole.to(like.device), like.device_mesh, like.placements, src_data_rank=None
    )
