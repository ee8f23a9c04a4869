"""Running an `evaluator{}`: postconfig, getters, functions, and how they are joined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.families.protocol import SetupFailed
from sandbox.osworld import steps
from sandbox.osworld.getters import GETTERS, Place
from sandbox.osworld.metrics import INFEASIBLE, METRICS
from sandbox.verdict import Verdict


def judge(place: Place, evaluator: Mapping[str, Any], *, gave_up: bool) -> Verdict:
    """Return the verdict; `gave_up` is whether the actor said that the task can't be done.

    Several functions count all together (conj "and", the least of them) or any (conj "or", the best).
    Raises SetupFailed where the evaluator itself can't be run: that says nothing about the actor.
    """
    functions = _listed(evaluator["func"])
    if functions == [INFEASIBLE]:
        right = "is right: it can't be done" if gave_up else "is wrong: it can't be done"
        return Verdict(float(gave_up), f"what the actor said {right}", True)
    if gave_up:
        return Verdict(0.0, "the actor gave up a task that can be done", True)
    steps.run(place, evaluator.get("postconfig") or [])
    results = _paired(evaluator.get("result"), len(functions), "result")
    wanted = _paired(evaluator.get("expected"), len(functions), "expected")
    options = _paired(evaluator.get("options"), len(functions), "options")
    scores: list[tuple[str, float]] = []
    for name, result, expected, option in zip(functions, results, wanted, options, strict=True):
        if name not in METRICS:
            raise SetupFailed(f"there is no function {name!r} here")
        score = METRICS[name](_get(place, result), _get(place, expected), option or {})
        scores.append((name, score))
    join = max if evaluator.get("conj") == "or" else min
    reward = join(score for _, score in scores)
    return Verdict(reward, ", ".join(f"{name}: {score:g}" for name, score in scores), reward >= 1)


def _get(place: Place, getter: object) -> Any:
    if not isinstance(getter, Mapping):
        return getter
    kind = str(getter.get("type"))
    if kind not in GETTERS:
        raise SetupFailed(f"there is no getter {kind!r} here")
    try:
        return GETTERS[kind](place, getter)
    except KeyError as error:
        raise SetupFailed(f"the getter {kind} lacks {error}") from error


def _paired(value: object, count: int, what: str) -> list[Any]:
    """Return one value per function: a list as it is, anything else for each."""
    if not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise SetupFailed(f"the evaluator has {count} functions and {len(value)} of {what}")
    return value


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
