"""Adding up checkpoints: what it is told."""

from __future__ import annotations

from collections.abc import Mapping

from training.presets.fields import Field, Value

FIELDS = (
    Field("dtype", "Number format", "Of the weights that come out.", "float32", choices=("float32", "bfloat16")),
)  # fmt: skip
PRESETS: dict[str, dict[str, Value]] = {"standard": {}}


def check(config: Mapping[str, Value]) -> dict[str, str]:
    """Return what is wrong with the values together, by field."""
    return {}
