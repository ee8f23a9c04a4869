"""One value of a configuration: its bounds, and how what was typed becomes it."""

from __future__ import annotations

from dataclasses import dataclass

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a configuration; `low` and `high` are included, `choices` excludes both."""

    name: str
    label: str
    help: str
    default: Value
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> Value:
        """Return `value` as this field's type; raises ValueError saying what is allowed."""
        text = str(value).strip()
        if self.choices:
            if text not in self.choices:
                raise ValueError(f"{text!r} is not one of {', '.join(self.choices)}")
            return text
        whole = isinstance(self.default, int)
        return read_number(text, whole=whole, low=self.low, high=self.high)


def read_number(text: str, *, whole: bool, low: float, high: float) -> int | float:
    """Return what was typed as a number from `low` to `high`; raises ValueError saying what is allowed."""
    try:
        number: int | float = int(text) if whole else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a {'whole ' if whole else ''}number") from None
    if not low <= number <= high:  # also refuses nan
        raise ValueError(f"{text} is not between {low:g} and {high:g}")
    return number


LEARNING_RATE = Field(
    "learning_rate", "Learning rate", "At its height, after the warm-up.", 2e-4, 0, 1
)
STEPS = Field(
    "steps", "Steps", "Optimiser steps; 0 means: as many as the epochs take.", 0, 0, 10_000_000
)
BATCH_SIZE = Field("batch_size", "Batch size", "Rows per optimiser step.", 8, 1, 4096)
WEIGHTS = (
    Field("warmup_steps", "Warm-up steps", "Steps in which the rate rises from 0.", 10, 0, 1_000_000),
    Field("weight_decay", "Weight decay", "Of AdamW.", 0.0, 0, 1),
    Field("max_grad_norm", "Gradient norm limit", "Longer gradients are shortened to it.", 1.0, 0, 1000),
    Field("lora_rank", "LoRA rank", "0 trains all weights; an adapter that is continued keeps its own.", 16, 0, 512),
    Field("max_tokens", "Longest row", "Tokens; a longer row is named and left out.", 2048, 64, 131_072),
    Field("micro_tokens", "Tokens at once", "Of one forward pass; 0: the whole batch. Less needs less memory and gives the same result.", 0, 0, 10_000_000),
    Field("gradient_checkpointing", "Recompute activations", "Less memory for a third more time.", "no", choices=("no", "yes")),
    Field("save_every", "Checkpoint every", "Steps; 0 means: only at the end.", 50, 0, 1_000_000),
    Field("seed", "Seed", "The same seed and data give the same weights on the same machine.", 0, 0, 2**31 - 1),
    Field("dtype", "Number format", "Of the frozen weights and the arithmetic.", "float32", choices=("float32", "bfloat16")),
    Field("processes", "Processes", "0 means: one per GPU; on a CPU one.", 0, 0, 64),
    Field("sharding", "Weights on several processes", "auto shards (fsdp2) where all weights are trained on several GPUs; else each process holds them whole.", "auto", choices=("auto", "none", "fsdp2")),
)  # fmt: skip
"""What every trainer that moves weights is told."""
