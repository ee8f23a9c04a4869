"""What a run is trained with: the fields of its configuration by kind, their bounds, and the presets.

Each kind is a module here with FIELDS (the first ones are the ones that people change), PRESETS (the
first one is the default; each is what differs from the fields' defaults) and `check`, which says what
is wrong with values that are right one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from training.errors import BadConfig
from training.presets import ct, merge, orm, ppo, sft, value
from training.presets.fields import Field, Value

_KINDS: dict[str, ModuleType] = {
    "sft": sft, "ct": ct, "value": value, "ppo": ppo, "orm": orm, "merge": merge,
}  # fmt: skip


def fields_of(kind: str) -> tuple[Field, ...]:
    """Return the fields of a kind of run, in the order of a form."""
    fields: tuple[Field, ...] = _KINDS[kind].FIELDS
    return fields


def presets_of(kind: str) -> dict[str, dict[str, Value]]:
    """Return the presets of a kind by name, each a whole configuration."""
    defaults = {field.name: field.default for field in fields_of(kind)}
    return {name: defaults | changed for name, changed in _KINDS[kind].PRESETS.items()}


def read_config(kind: str, values: Mapping[str, object]) -> dict[str, Value]:
    """Return a whole configuration; what is missing gets its default.

    Raises BadConfig with one message per field, unknown fields included.
    """
    fields = {field.name: field for field in fields_of(kind)}
    errors = {name: "there is no such field" for name in values if name not in fields}
    config: dict[str, Value] = {}
    for field in fields.values():
        try:
            config[field.name] = field.read(values.get(field.name, field.default))
        except ValueError as error:
            errors[field.name] = str(error)
    if not errors:
        errors = _KINDS[kind].check(config)
    if errors:
        raise BadConfig(errors)
    return config


__all__ = ["Field", "Value", "fields_of", "presets_of", "read_config"]
