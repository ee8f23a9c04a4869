"""The critic: the actor's own trunk with a scalar head; V(s) of every token that is about to be said.

UI-TARS-2 (arXiv 2509.02544) does not say what its critic begins as. Where there is no reward model
the critic begins as a copy of the actor (CompactionRL, arXiv 2607.05378), with a head of zeros, so
that V is 0 everywhere and early advantages are the rewards themselves.

A critic's checkpoint is that of a policy plus `value_head.safetensors`; its manifest names the actor
whose episodes it knows and how much of their returns it explains.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from agent.serving.checkpoint import Loaded, find
from agent.serving.manifest import Manifest
from training.trainers.job import Refused
from training.trainers.learner import Learner, open_model
from training.trainers.settings import Settings

HEAD = "value_head.safetensors"


class Critic(nn.Module):
    """`model` is what open_model returns, with its language head never asked."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        whole = _without_adapter(model)
        said = whole.get_output_embeddings().weight
        if said is not whole.get_input_embeddings().weight:
            said.requires_grad_(False)  # it never gets a gradient: no process may wait for one
        self.head = nn.Linear(whole.config.get_text_config().hidden_size, 1, dtype=torch.float32)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        # What Shards asks a model for: its layers, and whether it is an adapter that is trained.
        self._no_split_modules = whole._no_split_modules
        if whole is not model:
            self.peft_config = model.peft_config

    def forward(self, *, keep: int, **batch: Tensor) -> Tensor:
        """Return the values (n, keep - 1), fp32, of the states before the last `keep` - 1 tokens."""
        # The layers below the language head; an adapter sits inside them and stays in force.
        hidden = _without_adapter(self.model).model(**batch).last_hidden_state
        weight, bias = self.head.weight.float(), self.head.bias.float()
        return F.linear(hidden[:, -keep:-1].float(), weight, bias)[..., 0]

    def save_pretrained(self, folder: Path, state_dict: dict[str, Tensor] | None = None) -> None:
        """Write the trunk (or its adapter) as a policy's, and the head beside it.

        `state_dict` has the weights of this module by name, where the module doesn't hold them whole.
        """
        trunk = None
        if state_dict is not None:
            trunk = {
                name.removeprefix("model."): tensor
                for name, tensor in state_dict.items()
                if name.startswith("model.")
            }
        self.model.save_pretrained(folder, state_dict=trunk)
        found = self.head.state_dict() if state_dict is None else _head_of(state_dict)
        head = {name: tensor.detach().float().cpu().contiguous() for name, tensor in found.items()}
        save_file(head, folder / HEAD, metadata={"format": "pt"})


def open_critic(settings: Settings, uri: str = "") -> tuple[Loaded, Manifest]:
    """Return a critic for training, and the manifest of its checkpoints.

    `uri` is a critic's checkpoint, or the actor's: then the head is new. Raises CheckpointError.
    """
    uri = uri or settings.base
    loaded, manifest = open_model(settings, uri)
    critic = Critic(loaded.model)
    if (head := _head_file(uri)).exists():
        critic.head.load_state_dict(load_file(head))
    critic.train()
    loaded.model = critic
    return loaded, dataclasses.replace(manifest, role="critic", explained_variance=None)


class CriticLearner(Learner):
    """Moves the weights of a critic; its head stays in fp32, whatever the trunk computes in."""

    def __init__(
        self, loaded: Loaded, manifest: Manifest, settings: Settings, accelerator: Accelerator
    ) -> None:
        super().__init__(loaded, manifest, settings, accelerator)
        if not self.sharded:
            for p in loaded.model.head.parameters():
                p.data = p.data.float()
            self.masters.give_weights()  # what the lower precision has rounded


def gate(uri: str, *, actor: str, least: float) -> None:
    """Raise Refused unless the critic `uri` belongs to `actor` and explains at least `least`.

    `actor` is the sha256 of the actor's checkpoint (training.weights.fingerprint).
    """
    way_out = "pretrain a value model on episodes of this actor, or set any_critic to yes"
    if not uri:
        raise Refused(f"the run has no critic: {way_out}")
    manifest = find(uri).manifest
    if manifest.role != "critic" or not _head_file(uri).exists():
        raise Refused(f"{uri} is no critic, its role is {manifest.role}: {way_out}")
    if manifest.actor != actor:
        raise Refused(
            f"the critic {manifest.version} belongs to the actor {manifest.actor[:12] or '?'}, "
            f"this run starts from {actor[:12] or '?'}: {way_out}"
        )
    known = manifest.explained_variance
    if known is None or not known >= least:
        said = "is not known" if known is None else f"is {known:.3f}"
        raise Refused(
            f"the explained variance of the critic {manifest.version} {said}, below the {least:g} "
            f"that is asked for: train it longer or on more episodes, or set any_critic to yes"
        )


def _head_of(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weights[f"head.{name}"] for name in ("weight", "bias")}


def _head_file(uri: str) -> Path:
    files = find(uri)
    return (files.adapter or files.weights) / HEAD


def _without_adapter(model: Any) -> Any:
    """Return the transformers model, under its adapter where it has one (the layers are the same)."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model
