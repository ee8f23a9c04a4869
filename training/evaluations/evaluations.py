"""Verbs of Evaluation: begin, cancel, settle; and its report, live or for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agent.models import Deployment
from sandbox import families
from sandbox.families import TaskSpec
from training.errors import BadConfig, NameTaken
from training.evaluations.comparison import Difference, compare
from training.evaluations.references import random_reward
from training.evaluations.results import Played, results
from training.evaluations.suites import Suite
from training.models import Evaluation, Rollout
from training.rollouts import rollouts

MAX_STEPS = 30
GREEDY, SAMPLED = 0.0, 1.0
"""Temperature where a task and seed is played once, and where several samples of it are wanted."""


def begin(
    *,
    name: str,
    suite: Suite,
    deployment: Deployment,
    seeds: Sequence[int],
    repeats: int = 1,
    max_steps: int = MAX_STEPS,
    temperature: float | None = None,
    pictures: bool = True,
    by: User | None = None,
) -> Evaluation:
    """Queue every task of `suite` with every seed, `repeats` times, for `deployment` to play.

    Greedy where nothing else is said, except where samples of the same seed are wanted. Raises
    NameTaken, and BadConfig naming each field that is wrong.
    """
    if max_steps < 1:
        raise BadConfig({"max_steps": "an episode has at least one step"})
    if Evaluation.objects.filter(name=name).exists():
        raise NameTaken(f"there is an evaluation called {name!r}: choose another name")
    if temperature is None:
        temperature = GREEDY if repeats == 1 else SAMPLED
    config = {"max_steps": max_steps, "temperature": temperature, "picture": pictures}
    with transaction.atomic():
        rollout = rollouts.create(
            name=name,
            purpose=Rollout.Purpose.EVALUATE,
            deployment=deployment,
            tasks=[(task.family, task.name) for task in suite.tasks],
            seeds=seeds,
            repeats=repeats,
            config=config,
            by=by,
        )
        return Evaluation.objects.create(
            name=name,
            suite=suite.name,
            suite_checksum=suite.checksum,
            tasks=[_frozen(task, seeds[0]) for task in suite.tasks],
            rollout=rollout,
            seeds=list(dict.fromkeys(seeds)),
            repeats=repeats,
            max_steps=max_steps,
            version=deployment.version,
            reads=deployment.reads,
        )


def free_name(suite: str, deployment: str) -> str:
    """Return a name that says what is evaluated and is not taken yet."""
    stem = f"{suite}-{deployment}"[:90]
    taken = set(Rollout.objects.filter(name__startswith=stem).values_list("name", flat=True))
    taken |= set(Evaluation.objects.filter(name__startswith=stem).values_list("name", flat=True))
    return next(name for n in range(1, len(taken) + 2) if (name := f"{stem}-{n}") not in taken)


def cancel(evaluation: Evaluation) -> Evaluation:
    """End it now; what was played so far stays. Raises WrongState where it has ended."""
    rollouts.cancel(evaluation.rollout)
    evaluation.rollout.refresh_from_db()
    settle(evaluation)
    return evaluation


def settle(evaluation: Evaluation) -> bool:
    """Keep the results of an evaluation whose rollout has ended; returns whether it has."""
    if evaluation.rollout.state in Rollout.LIVE:
        return False
    if not evaluation.results:
        evaluation.results = _results(evaluation)
        # Whoever comes second computes the same.
        Evaluation.objects.filter(pk=evaluation.pk).update(results=evaluation.results)
    return True


def settle_all() -> int:
    """Keep the results of every evaluation that has ended meanwhile; returns how many."""
    ended = Evaluation.objects.filter(results={}).exclude(rollout__state__in=Rollout.LIVE)
    return sum(settle(row) for row in ended.select_related("rollout"))


def played(evaluation: Evaluation) -> list[Played]:
    """Return the episodes of an evaluation as values, in their order."""
    rows = evaluation.rollout.episodes.order_by("pk").values_list(
        "family", "task", "seed", "repeat", "state", "reward", "score", "steps", "attempts"
    )
    return [
        Played(f"{family}/{task}", seed, repeat, state, reward, score, steps, lost)
        for family, task, seed, repeat, state, reward, score, steps, lost in rows
    ]


def report(evaluation: Evaluation) -> dict[str, Any]:
    """Return all that is known of an evaluation: what was asked, and what came out so far.

    JSON; the keys beside those of `results.results` say what was evaluated and how.
    """
    rollout = evaluation.rollout
    found = evaluation.results or _results(evaluation)
    return {
        "name": evaluation.name,
        "state": rollout.state,
        "error": rollout.error,
        "suite": evaluation.suite,
        "suite_checksum": evaluation.suite_checksum,
        "deployment": rollout.deployment.name,
        "version": evaluation.version,
        "reads": evaluation.reads,
        "seeds": evaluation.seeds,
        "repeats": evaluation.repeats,
        "max_steps": evaluation.max_steps,
        "temperature": rollout.config.get("temperature"),
        "created_at": evaluation.created_at.isoformat(timespec="seconds"),
        **found,
    }


def beside(first: Evaluation, second: Evaluation) -> Difference | None:
    """Return how much better `second` is on the tasks and seeds of both; None where there are none."""
    return compare(played(first), played(second))


def _results(evaluation: Evaluation) -> dict[str, Any]:
    found = results(played(evaluation), tasks=evaluation.tasks, max_steps=evaluation.max_steps)
    seen = evaluation.rollout.episodes.exclude(versions=[]).values_list("versions", flat=True)
    return {**found, "versions": sorted({str(version) for them in seen for version in them})}


def _frozen(task: TaskSpec, seed: int) -> dict[str, Any]:
    return {
        "id": task.id,
        "checksum": task.checksum,
        "reference": task.reference,
        "reference_from": task.reference_from,
        "oracle": families.load(task.family).oracle(task, seed) is not None,
        "random": random_reward(task),
    }
