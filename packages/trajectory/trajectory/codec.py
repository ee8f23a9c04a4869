"""Trajectories as JSON lines: one object per line, each with its format version.

Reading accepts every version in UPGRADES and the current one; writing uses the current one.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any

from trajectory.actions import ACTION_NAMES, ACTION_TYPES, BUTTONS, Action
from trajectory.steps import (
    Actor,
    Element,
    Observation,
    Outcome,
    Recall,
    Sample,
    Step,
    Summary,
    Trajectory,
)

FORMAT_VERSION = 3

JsonObject = dict[str, Any]


class FormatError(ValueError):
    """A record can't be read; the message names the field."""


# -- actions -----------------------------------------------------------------------------------


def action_to_dict(action: Action) -> JsonObject:
    """Return `action` as a JSON object with its `type`; defaults are written out."""
    body = {f.name: _plain(getattr(action, f.name)) for f in dataclasses.fields(action)}
    return {"type": ACTION_NAMES[type(action)], **body}


def action_from_dict(record: object) -> Action:
    """Build an action; raises FormatError naming what is missing, unknown or of the wrong type."""
    if not isinstance(record, dict):
        raise FormatError(f"an action is an object, not {type(record).__name__}")
    name = record.get("type")
    cls = ACTION_TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise FormatError(f"unknown action type {name!r}; known: {', '.join(ACTION_TYPES)}")
    hints = typing.get_type_hints(cls)
    values: JsonObject = {}
    for field in dataclasses.fields(cls):
        if field.name in record:
            values[field.name] = _typed(
                record[field.name], hints[field.name], f"{name}.{field.name}"
            )
        elif field.default is dataclasses.MISSING:
            raise FormatError(f"{name}.{field.name} is missing")
    unknown = set(record) - {"type"} - {f.name for f in dataclasses.fields(cls)}
    if unknown:
        raise FormatError(f"{name} has no field {sorted(unknown)[0]!r}")
    if name == "drag" and len(values["path"]) < 2:
        raise FormatError("drag.path needs at least two points")
    if values.get("button", "left") not in BUTTONS:
        raise FormatError(f"{name}.button must be one of {', '.join(BUTTONS)}")
    action: Action = cls(**values)
    return action


# -- observations and steps ----------------------------------------------------------------------


def observation_to_dict(observation: Observation) -> JsonObject:
    """Return an observation as a JSON object; the picture stays a reference."""
    record = _record(observation)
    if observation.elements is not None:
        record["elements"] = [_record(element) for element in observation.elements]
    return record


def observation_from_dict(record: object) -> Observation:
    """Build an observation; raises FormatError."""
    values = _values(Observation, record, "observation")
    elements = values.get("elements")
    if elements is not None:
        values["elements"] = tuple(
            Element(**_values(Element, e, "observation.elements")) for e in elements
        )
    return Observation(**values)


def step_to_dict(step: Step) -> JsonObject:
    """Return a step as a JSON object."""
    return {
        **_record(step),
        "observation": observation_to_dict(step.observation),
        "action": action_to_dict(step.action),
        "sample": None if step.sample is None else _record(step.sample),
        "recall": None if step.recall is None else recall_to_dict(step.recall),
    }


def step_from_dict(record: object) -> Step:
    """Build a step; raises FormatError."""
    values = _values(Step, record, "step", skip=("observation", "action", "sample", "recall"))
    assert isinstance(record, dict)
    for name in ("observation", "action"):
        if name not in record:
            raise FormatError(f"step.{name} is missing")
    sample, recall = record.get("sample"), record.get("recall")
    return Step(
        **values,
        observation=observation_from_dict(record["observation"]),
        action=action_from_dict(record["action"]),
        sample=None if sample is None else Sample(**_values(Sample, sample, "step.sample")),
        recall=None if recall is None else recall_from_dict(recall),
    )


def recall_to_dict(recall: Recall) -> JsonObject:
    """Return what a step's prompt recalled as a JSON object."""
    return {**_record(recall), "written": [_record(summary) for summary in recall.written]}


def recall_from_dict(record: object) -> Recall:
    """Build a recall; raises FormatError."""
    values = _values(Recall, record, "step.recall")
    values["written"] = tuple(
        Summary(**_values(Summary, summary, "step.recall.written"))
        for summary in values.get("written", ())
    )
    return Recall(**values)


# -- trajectories --------------------------------------------------------------------------------


def to_dict(trajectory: Trajectory) -> JsonObject:
    """Return a trajectory as a JSON object with its format version."""
    return {
        "format": FORMAT_VERSION,
        **_record(trajectory),
        "steps": [step_to_dict(step) for step in trajectory.steps],
        "metadata": dict(trajectory.metadata),
    }


def from_dict(record: object) -> Trajectory:
    """Build a trajectory from any readable format version; raises FormatError."""
    if not isinstance(record, dict):
        raise FormatError("a trajectory is an object")
    record = upgrade(record)
    values = _values(Trajectory, record, "trajectory", skip=("steps", "metadata", "format"))
    steps = record.get("steps")
    if not isinstance(steps, list):
        raise FormatError("trajectory.steps must be a list")
    metadata = record.get("metadata", {})
    if not isinstance(metadata, dict):
        raise FormatError("trajectory.metadata must be an object")
    return Trajectory(
        **values,
        steps=tuple(step_from_dict(step) for step in steps),
        metadata={str(k): str(v) for k, v in metadata.items()},
    )


def dump_lines(trajectories: Iterable[Trajectory]) -> Iterator[str]:
    """Yield one JSON line per trajectory, each with its newline."""
    for trajectory in trajectories:
        yield json.dumps(to_dict(trajectory), ensure_ascii=False, sort_keys=True) + "\n"


def load_lines(lines: Iterable[str], *, name: str = "input") -> Iterator[Trajectory]:
    """Yield the trajectories of JSON lines; FormatError names `name` and the line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield from_dict(json.loads(line))
        except ValueError as error:
            raise FormatError(f"{name}:{number}: {error}") from error


# -- versions ------------------------------------------------------------------------------------


def _from_version_1(record: JsonObject) -> JsonObject:
    """Version 1 wrote `actor` as `by`, and had no `trainable`."""
    steps = []
    for step in record.get("steps", []):
        step = dict(step)
        if "by" in step:
            step["actor"] = step.pop("by")
        step.setdefault("trainable", True)
        steps.append(step)
    return {**record, "steps": steps, "format": 2}


def _from_version_2(record: JsonObject) -> JsonObject:
    """Version 2 kept nothing of the memory: a step's `recall` is None."""
    return {**record, "format": 3}


UPGRADES: dict[int, Callable[[JsonObject], JsonObject]] = {
    1: _from_version_1,
    2: _from_version_2,
}


def upgrade(record: JsonObject) -> JsonObject:
    """Bring a record to FORMAT_VERSION; raises FormatError for a version that can't be read."""
    version = record.get("format")
    while version != FORMAT_VERSION:
        if not isinstance(version, int) or version not in UPGRADES:
            readable = sorted({*UPGRADES, FORMAT_VERSION})
            raise FormatError(f"format {version!r} can't be read; readable: {readable}")
        record = UPGRADES[version](record)
        version = record["format"]
    return record


# -- plain values --------------------------------------------------------------------------------


def _record(value: object) -> JsonObject:
    assert dataclasses.is_dataclass(value)
    return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _values(cls: type, record: object, where: str, skip: tuple[str, ...] = ()) -> JsonObject:
    if not isinstance(record, dict):
        raise FormatError(f"{where} must be an object")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    values: JsonObject = {}
    for name, field in fields.items():
        if name in skip:
            continue
        if name in record:
            values[name] = _typed(record[name], hints[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise FormatError(f"{where}.{name} is missing")
    unknown = set(record) - set(fields) - set(skip)
    if unknown:
        raise FormatError(f"{where} has no field {sorted(unknown)[0]!r}")
    return values


def _typed(value: Any, hint: Any, where: str) -> Any:
    """Return `value` as the type `hint` says, or raise FormatError naming `where`."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        if value is None and type(None) in args:
            return None
        return _typed(value, next(a for a in args if a is not type(None)), where)
    if origin is typing.Literal:
        if value not in args:
            raise FormatError(f"{where} must be one of {', '.join(map(str, args))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise FormatError(f"{where} must be a list")
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_typed(v, args[0], where) for v in value)
        if len(value) != len(args):
            raise FormatError(f"{where} must have {len(args)} values")
        return tuple(_typed(v, a, where) for v, a in zip(value, args, strict=True))
    if hint in (Element, Summary):
        return value
    if hint in (Actor, Outcome):
        try:
            return hint(value)
        except ValueError:
            raise FormatError(f"{where} must be one of {', '.join(hint)}") from None
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (
        not isinstance(value, hint) or (hint is int and isinstance(value, bool))
    ):
        raise FormatError(f"{where} must be {hint.__name__}, not {type(value).__name__}")
    return value
