"""The rollout of an RL run: made with the run, played by the run's own policy server."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from agent import deployments, dialects
from agent.models import Deployment
from training.data.rows import PromptFormat
from training.errors import BadConfig, Mismatch
from training.models import Rollout, Run
from training.rollouts import rollouts
from training.weights.promotions import refuse_mismatch

FIRST_SEED = 1_000_000
"""Seeds below are left to evaluations and demonstrations: nothing that is measured is trained on."""

WAITS = "its policy server is not up yet"

Task = tuple[str, str]


def begin(run: Run, *, tasks: Sequence[Task]) -> Rollout:
    """Queue all episodes that `run` (of kind ppo) will learn from, and say who plays them.

    Call it in the transaction that makes the run; no episode begins before the run's policy server
    is up. Raises BadConfig naming the field, NameTaken.
    """
    config = run.config
    if not tasks:
        raise BadConfig({"tasks": "name at least one task"})
    if unknown := rollouts.unknown_task(tasks):
        raise BadConfig({"tasks": unknown})
    if config["staleness"] > 0 and not config["ratio_cap"]:
        raise BadConfig({"staleness": "stale samples need a correction: set an importance cap"})
    deployment = _deployment(run)
    episodes = config["updates"] * config["batch"]
    if episodes > rollouts.MAX_EPISODES:
        raise BadConfig({"updates": f"more than {rollouts.MAX_EPISODES} episodes"})
    rollout = rollouts.create_list(
        name=f"rl-{run.name}",
        deployment=deployment,
        wanted=list(episodes_of(tasks, episodes, group=config["group"], seed=config["seed"])),
        config={
            "staleness": config["staleness"],
            "batch": config["batch"],
            "temperature": config["temperature"],
            "top_p": 1.0,  # else the log-probabilities are not those of what was sampled
            "max_steps": config["max_steps"],
            "every_reply": True,
            "elements": deployment.reads == Deployment.Reads.ELEMENTS,
        },
        by=run.created_by,
        purpose=Rollout.Purpose.TRAIN,
    )
    rollout = rollouts.pause(rollout, reason=WAITS)
    run.rollout, run.deployment = rollout, deployment
    run.save(update_fields=["rollout", "deployment"])
    return rollout


def episodes_of(
    tasks: Sequence[Task], total: int, *, group: int, seed: int, after: int = 0
) -> Iterator[tuple[str, str, int, int]]:
    """Yield `total` episodes (family, task, seed, repeat), those of a group one after the other.

    The tasks take turns, each group has a seed of its own that follows from `seed`. The first
    `after` episodes of that list are left out.
    """
    first = FIRST_SEED + random.Random(f"rl/{seed}").randrange(2**30)
    distinct = list(dict.fromkeys(tasks))
    for n in range(after, after + total):
        at, repeat = divmod(n, group)
        turn, which = divmod(at, len(distinct))
        yield *distinct[which], first + turn, repeat


def is_own(run: Run) -> bool:
    """Whether the policy server of an RL run is the run's own, and not a chosen one."""
    return run.deployment is not None and run.deployment.name in _own_names(run)


def _own_names(run: Run) -> tuple[str, str]:
    return f"rl-{run.name}", f"rl-{run.pk}"


def _deployment(run: Run) -> Deployment:
    """Return who plays: the chosen deployment, or one of the run's own without an address yet."""
    assert run.base is not None
    try:
        form = PromptFormat.of_manifest(run.base.manifest)
    except KeyError as error:
        raise BadConfig(
            {"base": f"the manifest of {run.base.version} does not say its {error}"}
        ) from error
    chosen = run.deployment
    if chosen is None:
        name, short = _own_names(run)
        longest = Deployment._meta.get_field("name").max_length or 50
        return deployments.add_own(
            name=name if len(name) <= longest else short,
            reads=form.observation,
            dialect=form.dialect,
            coordinates=form.coordinates or dialects.load(form.dialect).coordinates,
            history_n=form.history_n,
        )
    if chosen.kind != Deployment.Kind.LOCAL or not chosen.base_url:
        raise BadConfig(
            {"deployment": f"{chosen.name} has no policy server of its own with an address"}
        )
    if chosen.is_partner:
        raise BadConfig(
            {"deployment": f"{chosen.name} is beside the annotators: its weights would change"}
        )
    other = Run.objects.filter(deployment=chosen, state__in=Run.WAITING).exclude(pk=run.pk).first()
    if other is not None:
        raise BadConfig({"deployment": f"{chosen.name} plays for {other.name} now"})
    try:
        refuse_mismatch(run.base, chosen)
    except Mismatch as error:
        raise BadConfig({"deployment": str(error)}) from error
    return chosen
