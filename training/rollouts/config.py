"""How the episodes of a rollout are played: every value, its bounds, and what it means to people."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training.errors import BadConfig
from training.presets.fields import read_number


def _value(default: Any, label: str, help: str, low: float = 0, high: float = 0) -> Any:
    meta = {"label": label, "help": help, "low": low, "high": high}
    return field(default=default, metadata=meta)


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """The checked configuration of a rollout; seconds are wall-clock seconds."""

    max_steps: int = _value(0, "Steps at most", "Of an episode; 0: what the task says.", 0, 1000)
    temperature: float = _value(
        1.0, "Temperature", "Of the policy's samples; 0 takes the likeliest.", 0, 2
    )
    top_p: float = _value(1.0, "Top p", "Data to train on with RL needs 1.", 0.01, 1)
    step_s: float = _value(
        30.0, "Seconds for a step", "Of the environment; more means that it is broken.", 0.1, 600
    )
    episode_s: float = _value(
        600.0, "Seconds for an episode", "Waiting for the policy is not counted.", 1, 86_400
    )
    attempts: int = _value(
        3, "Attempts", "With a fresh environment each, before an episode counts as broken.", 1, 20
    )
    concurrency: int = _value(
        32, "Episodes at once", "Over all workers; far more than policy slots.", 1, 10_000
    )
    slots: int = _value(8, "Policy slots", "Answers that one worker waits for at once.", 1, 1000)
    patience_s: float = _value(
        120.0, "Seconds without the policy", "Then the rollout pauses with the reason.", 1, 86_400
    )
    staleness: int = _value(
        -1, "Staleness", "Updates of the trainer while an episode is played; -1: no bound.", -1, 64
    )
    batch: int = _value(
        32, "Batch", "Episodes per update; counts with a staleness bound.", 1, 65_536
    )
    memory: int = _value(
        50, "Working memory", "Steps that a prompt still knows one by one.", 1, 500
    )
    memory_tokens: int = _value(
        0, "Prompt at most", "Tokens that memory may fill a prompt to; 0: no limit.", 0, 1_000_000
    )
    summaries: bool = _value(
        False,
        "Model writes summaries",
        "Of what leaves working memory; else it is listed in words.",
    )
    every_reply: bool = _value(
        False,
        "Unreadable replies are steps",
        "For RL, which learns from all that was sampled; else the policy is asked again.",
    )
    picture: bool = _value(True, "Keep pictures", "Off only for policies that read elements.")
    elements: bool = _value(True, "Read elements", "What policies of elements need.")

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


FIELDS = dataclasses.fields(RolloutConfig)


def read_config(values: Mapping[str, object]) -> RolloutConfig:
    """Return a whole configuration; what is missing gets its default.

    Raises BadConfig with one message per field, unknown fields included.
    """
    known = {field.name for field in FIELDS}
    errors = {name: "there is no such field" for name in values if name not in known}
    found: dict[str, Any] = {}
    for one in FIELDS:
        try:
            found[one.name] = _read(one, values.get(one.name, one.default))
        except ValueError as error:
            errors[one.name] = str(error)
    if not errors and not (found["picture"] or found["elements"]):
        errors["picture"] = "without pictures and elements a policy sees nothing"
    if errors:
        raise BadConfig(errors)
    return RolloutConfig(**found)


def _read(one: dataclasses.Field[Any], value: object) -> object:
    """Return `value` as the field's type; raises ValueError saying what is allowed."""
    text = str(value).strip()
    if isinstance(one.default, bool):
        if text.lower() in ("true", "yes", "on", "1"):
            return True
        if text.lower() in ("false", "no", "off", "0", ""):
            return False
        raise ValueError(f"{text!r} is not yes or no")
    low, high = one.metadata["low"], one.metadata["high"]
    return read_number(text, whole=isinstance(one.default, int), low=low, high=high)
