"""A model that is being trained: weights in two precisions, optimiser, and the folder it becomes."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator

from agent.serving.checkpoint import Loaded, find, load
from agent.serving.manifest import Manifest, read_json, write_manifest
from training.trainers.lora import hasten
from training.trainers.masters import Masters
from training.trainers.settings import Settings

if TYPE_CHECKING:
    from training.trainers.shards import Shards

CARRIED = (
    "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
    "preprocessor_config.json",
)  # fmt: skip
"""What full weights need beside them to be served."""


def accelerator() -> Accelerator:
    """Return what knows about devices and processes: a CPU is fine where there is nothing else."""
    torch.set_float32_matmul_precision("high")  # TF32 where a GPU has it; a CPU has not
    return Accelerator(cpu=not torch.cuda.is_available())


def open_model(settings: Settings, base: str = "") -> tuple[Loaded, Manifest]:
    """Load `base` (settings.base) for training; returns it and the manifest of its checkpoints.

    A LoRA checkpoint is continued as it is (its rank stays); `lora_rank` 0 trains all weights, with
    an adapter of the base merged in. Under bfloat16 the whole model computes in it, which is three
    times as fast on a CPU as fp32 and twice as fast as autocast; `Masters` keeps fp32 weights.
    """
    torch.manual_seed(settings.seed)
    base = base or settings.base
    files = find(base)
    if settings.lora_rank == 0:
        # trainable=False merges an adapter; all weights get gradients again below.
        loaded = load(base, trainable=False)
        loaded.model.requires_grad_(True)
        manifest = dataclasses.replace(files.manifest, kind="full", base=None)
    else:
        loaded = load(base, trainable=True)
        if files.adapter is None:
            from peft import LoraConfig, get_peft_model

            lora = LoraConfig(
                r=settings.lora_rank, lora_alpha=2 * settings.lora_rank, lora_dropout=0.0,
                target_modules="all-linear", bias="none",
            )  # fmt: skip
            loaded.model = get_peft_model(loaded.model, lora)
            manifest = dataclasses.replace(files.manifest, kind="lora", base=base)
        else:
            manifest = files.manifest
        hasten(loaded.model)
    loaded.model.config.use_cache = False
    if settings.gradient_checkpointing == "yes":
        loaded.model.gradient_checkpointing_enable({"use_reentrant": False})
        loaded.model.enable_input_require_grads()
    loaded.model.train()
    # A slice of the hidden states times the head would copy the head once per row of the batch.
    loaded.model.get_output_embeddings().register_forward_pre_hook(
        lambda module, inputs: (inputs[0].contiguous(), *inputs[1:])
    )
    return loaded, manifest


def sharded(settings: Settings, accelerator: Accelerator) -> bool:
    """Whether the weights are spread over the processes (FSDP2)."""
    if accelerator.num_processes == 1 or settings.sharding == "none":
        return False
    on_gpus = accelerator.device.type == "cuda"
    return settings.sharding == "fsdp2" or (on_gpus and settings.lora_rank == 0)


class Learner:
    """Moves the weights of one model; `model` is what a forward pass is asked of.

    Gradients of several processes are averaged, so a loss that is a sum over them is multiplied by
    their number. Every process calls `step`, `state` and `write`; the first one's results count.
    With `sharded` weights every process also makes equally many forward passes.
    """

    def __init__(
        self, loaded: Loaded, manifest: Manifest, settings: Settings, accelerator: Accelerator
    ) -> None:
        self.loaded, self.manifest, self.accelerator = loaded, manifest, accelerator
        self._longest, self._base = settings.max_grad_norm or math.inf, settings.base
        self.sharded, dtype = sharded(settings, accelerator), getattr(torch, settings.dtype)
        self.masters: Masters | Shards
        if self.sharded:
            from training.trainers.shards import Shards

            world = accelerator.num_processes
            self.masters = Shards(loaded.model, dtype, accelerator.device, world)
        else:
            loaded.model.to(accelerator.device)
            self.masters = Masters(loaded.model, dtype)
        self.optimiser = torch.optim.AdamW(
            self.masters.full, lr=settings.learning_rate, weight_decay=settings.weight_decay,
            fused=True,
        )  # fmt: skip
        self.model = loaded.model

    @property
    def size(self) -> int:
        """How many weights are trained."""
        return sum(p.numel() for p in self.masters.full)

    def step(self, rate: float) -> float:
        """Move the weights by the gradients that are there; returns the norm before clipping."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.masters.take_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.masters.full, self._longest)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.masters.give_weights()
        whole: Any = norm
        return float(whole.full_tensor() if self.sharded else whole)

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to go on with the same bits."""
        return {
            "weights": self.masters.state(),
            "optimiser": self.masters.optimiser_state(self.optimiser),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.masters.restore(state["weights"])
        self.masters.restore_optimiser(self.optimiser, state["optimiser"])

    def write(self, folder: Path, version: str) -> None:
        """Write a checkpoint that can be served as `version`, whole or not at all."""
        weights = self.masters.to_save()
        if folder.exists() or not self.accelerator.is_main_process:
            return
        partial = folder.with_name(f".{folder.name}.unfinished")
        shutil.rmtree(partial, ignore_errors=True)
        self.model.save_pretrained(partial, state_dict=weights)
        if self.manifest.kind == "lora":
            name_base(partial, str(self.manifest.base))
        else:
            carry(find(self._base).weights, partial)
        write_manifest(partial, dataclasses.replace(self.manifest, version=version))
        os.replace(partial, folder)


def carry(source: Path, folder: Path) -> None:
    """Copy what full weights need beside them."""
    for name in CARRIED:
        if (source / name).exists():
            shutil.copy(source / name, folder / name)


def name_base(folder: Path, base: str) -> None:
    """Name the base as the manifest does: peft writes a path of this machine, and an empty README."""
    path = folder / "adapter_config.json"
    settings = {**read_json(path), "base_model_name_or_path": base}
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "README.md").unlink(missing_ok=True)
