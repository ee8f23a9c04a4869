"""What an iteration of the flywheel is told: every value, its bounds, and what it means to people."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from training.errors import BadConfig
from training.evaluations import suites
from training.iterations.schedule import KINDS
from training.presets import fields_of, presets_of, read_config
from training.presets.fields import read_number
from training.rollouts import choosing

COLLECT, DATA, SCHEDULE, TRAINING, DECISION = (
    "What M(t) plays", "What becomes data", "What is trained, and when", "How it is trained",
    "What counts as better",
)  # fmt: skip


def _value(
    default: Any, group: str, label: str, help: str, low: float = 0, high: float = 0,
    choices: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    meta = {"group": group, "label": label, "help": help, "low": low, "high": high}
    return field(default=default, metadata={**meta, "choices": choices})


@dataclass(frozen=True, slots=True)
class IterationConfig:
    """The checked configuration of an iteration. Texts of several lines stay as they were typed."""

    tasks: str = _value(
        "miniwob/click-button\nminiwob/click-checkboxes\nminiwob/click-dialog-2\n"
        "miniwob/click-option\nminiwob/click-tab\nminiwob/enter-text\nminiwob/login-user\n"
        "miniwob/choose-list",
        COLLECT, "Tasks", "One a line: a family, a task, or a pattern such as miniwob/click-*. "
        "RL practises on the same.",
    )  # fmt: skip
    seeds: int = _value(
        4, COLLECT, "Seeds", "Of each task; every iteration takes fresh ones.", 1, 100_000
    )
    first_seed: int = _value(
        20_000, COLLECT, "First seed",
        "Of the first iteration; those of the evaluation are stepped over.", 0, 2**62,
    )  # fmt: skip
    samples: int = _value(
        4, COLLECT, "Samples", "Of each task and seed: rejection sampling chooses among them.", 1, 1000
    )  # fmt: skip
    temperature: float = _value(
        1.0, COLLECT, "Temperature", "Of these samples; 0 would make them all alike.", 0.05, 2
    )
    max_steps: int = _value(15, COLLECT, "Steps at most", "Of an episode, here and in the evaluation.", 1, 1000)  # fmt: skip
    per_seed: int = _value(
        2, DATA, "Successes kept of a seed",
        "Successes, the shortest first (rejection sampling); the rest goes to D_CT. 0: all.", 0, 1000,
    )  # fmt: skip
    sessions: str = _value(
        "yes", DATA, "Interactive sessions", "Reviewed sessions of people go in beside the episodes.",
        choices=("yes", "no"),
    )  # fmt: skip
    mix: str = _value(
        "", DATA, "Mixed in",
        "General data, one dataset a line with its weight beside D_SFT or D_CT: 'general-1 0.5'.",
    )  # fmt: skip
    ct_every: int = _value(
        4, SCHEDULE, "CT in every n-th iteration", "0: never. Rarer than SFT and RL.", 0, 1000
    )
    sft_every: int = _value(1, SCHEDULE, "SFT in every n-th iteration", "0: never.", 0, 1000)
    rl_every: int = _value(
        2, SCHEDULE, "RL in every n-th iteration",
        "0: never. A critic is pretrained first, unless one knows this very policy well enough.",
        0, 1000,
    )  # fmt: skip
    start: str = _value(
        "base", SCHEDULE, "Training starts from",
        "base: the shared start, on the grown datasets, as UI-TARS-2 does. policy: from M(t).",
        choices=("base", "policy"),
    )  # fmt: skip
    ct_preset: str = _value("standard", TRAINING, "Preset of CT", "standard: all of it once, gently; quick: a few steps.", choices=tuple(presets_of("ct")))  # fmt: skip
    sft_preset: str = _value("standard", TRAINING, "Preset of SFT", "standard: three epochs; quick: a few steps.", choices=tuple(presets_of("sft")))  # fmt: skip
    value_preset: str = _value("standard", TRAINING, "Preset of the critic", "standard: at most 50 steps, as VAPO; quick: a few.", choices=tuple(presets_of("value")))  # fmt: skip
    ppo_preset: str = _value("quick", TRAINING, "Preset of RL", "UI-TARS-2: the paper's recipe; GRPO: no critic; quick: minutes on a CPU.", choices=tuple(presets_of("ppo")))  # fmt: skip
    changes: str = _value(
        "", TRAINING, "Changed values",
        "One a line, of any run: 'sft.learning_rate: 0.0001' or 'ppo.updates: 20'.",
    )  # fmt: skip
    suite: str = _value(
        "miniwob-20", DECISION, "Suite", "The fixed tasks of the evaluation.", choices=suites.NAMES
    )
    evaluation_seeds: str = _value(
        "10000:10010", DECISION, "Seeds of the evaluation", "A:B, B not included; nothing trains on them."
    )  # fmt: skip
    repeats: int = _value(
        1, DECISION, "Samples in the evaluation", "Of each task and seed; 1 is greedy.", 1, 100
    )
    level: float = _value(
        0.05, DECISION, "Level",
        "One-sided: the chance to promote a candidate that is no better must be below it.",
        0.0001, 0.5,
    )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def run_config(self, kind: str) -> dict[str, Any]:
        """Return what a run of `kind` is launched with: its preset and the changed values."""
        preset = presets_of(kind)[getattr(self, f"{kind}_preset")]
        return {**preset, **_changes(self.changes).get(kind, {})}

    @property
    def wanted(self) -> list[tuple[str, str]]:
        """Return the tasks as (family, task)."""
        return choosing.tasks_of(self.tasks)

    @property
    def mixed(self) -> list[tuple[str, float]]:
        """Return the datasets that are mixed in, with their weights."""
        return _mix(self.mix)


FIELDS = dataclasses.fields(IterationConfig)
FEWEST = 8
"""Episodes that a critic is pretrained on; training.trainers.value refuses fewer."""

MOST = 1000
"""Iterations in a row."""

GROUPS = (COLLECT, DATA, SCHEDULE, TRAINING, DECISION)


def read(values: Mapping[str, object]) -> IterationConfig:
    """Return a whole configuration; what is missing gets its default.

    Raises BadConfig with one message per field, unknown fields included.
    """
    known = {one.name for one in FIELDS}
    errors = {name: "there is no such field" for name in values if name not in known}
    found: dict[str, Any] = {}
    for one in FIELDS:
        try:
            found[one.name] = _read(one, values.get(one.name, one.default))
        except ValueError as error:
            errors[one.name] = str(error)
    config = IterationConfig(**found)
    errors = {**_together(config, found), **errors}
    if errors:
        raise BadConfig(errors)
    return config


def _read(one: dataclasses.Field[Any], value: object) -> object:
    """Return `value` as the field's type; raises ValueError saying what is allowed."""
    # YAML reads yes and no as booleans, a list of tasks as a list, and changes as a mapping.
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, list | tuple):
        value = "\n".join(map(str, value))
    if isinstance(value, Mapping):
        value = yaml.safe_dump(dict(value))
    text = str(value).strip()
    if one.metadata["choices"]:
        if text not in one.metadata["choices"]:
            raise ValueError(f"{text!r} is not one of {', '.join(one.metadata['choices'])}")
        return text
    if isinstance(one.default, str):
        return text
    low, high = one.metadata["low"], one.metadata["high"]
    return read_number(text, whole=isinstance(one.default, int), low=low, high=high)


def _together(config: IterationConfig, found: Mapping[str, Any]) -> dict[str, str]:
    """Return what is wrong with texts and with values together, by field."""
    errors: dict[str, str] = {}
    whole = len(found) == len(FIELDS)
    if "tasks" in found:
        try:
            choosing.tasks_of(config.tasks)
        except BadConfig as error:
            errors |= error.errors
    for name, check in (
        ("evaluation_seeds", suites.seeds),
        ("mix", _mix),
        ("changes", _changes),
    ):
        try:
            check(getattr(config, name))
        except ValueError as error:
            errors[name] = str(error)
    if "changes" not in errors:
        for kind in KINDS:
            try:
                if f"{kind}_preset" in found:
                    read_config(kind, config.run_config(kind))
            except BadConfig as error:
                errors["changes"] = "; ".join(f"{kind}.{n}: {e}" for n, e in error.errors.items())
    if whole and not errors and config.rl_every and config.run_config("ppo")["advantage"] == "gae":
        episodes = len(config.wanted) * config.seeds * config.samples
        if episodes < FEWEST:
            errors["samples"] = (
                f"{episodes} episodes are too few for the critic of RL: at least {FEWEST}, "
                "some hundreds are good"
            )
    if not (config.ct_every or config.sft_every or config.rl_every):
        errors["sft_every"] = "nothing would ever be trained: CT, SFT and RL are all never"
    return errors


def _changes(text: str) -> dict[str, dict[str, Any]]:
    """Read lines "kind.field: value", or a YAML mapping of mappings; raises ValueError."""
    try:
        record = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"not readable: {error}") from error
    if not isinstance(record, dict):
        raise ValueError("write one value a line, such as 'sft.learning_rate: 0.0001'")
    changes: dict[str, dict[str, Any]] = {}
    for key, value in record.items():
        kind, _, name = str(key).partition(".")
        if kind not in KINDS or not (name or isinstance(value, dict)):
            raise ValueError(f"{key!r} does not begin with one of {', '.join(KINDS)} and a dot")
        if name and name not in {one.name for one in fields_of(kind)}:
            raise ValueError(f"{kind} has no value {name!r}")
        # YAML reads yes and no as booleans; the presets call them by their names.
        new = {name: value} if name else value
        words = {n: ("yes" if v else "no") if isinstance(v, bool) else v for n, v in new.items()}
        changes.setdefault(kind, {}).update(words)
    return changes


def _mix(text: str) -> list[tuple[str, float]]:
    """Read lines "dataset weight"; raises ValueError naming the line."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, weight = line.partition(" ")
        try:
            number = float(weight or 1)
        except ValueError:
            raise ValueError(f"{line!r}: {weight!r} is not a number") from None
        if not 0 < number <= 1000:
            raise ValueError(f"{line!r}: a weight is above 0 and at most 1000")
        found.append((name, number))
    return found
