"""Episodes of a rollout that were verified, with their trajectories in the blob store."""

from __future__ import annotations

from agent.models import Deployment
from annotation.session import pictures
from tests.agent.judge import episode
from training.models import Episode, Rollout
from trajectory import dump_lines

WON, LOST = "Order placed", "Sold out"


def make_rollout(name="played"):
    deployment = Deployment.objects.get_or_create(
        name="player", defaults={"kind": "scripted", "reads": "elements", "dialect": "element"}
    )[0]
    return Rollout.objects.create(name=name, deployment=deployment, state=Rollout.State.DONE)


def make_episodes(successes=6, failures=6, *, task="n2", rollout=None):
    """Play that many: what the last page of each says is what the verifier saw."""
    rollout = rollout or make_rollout()
    made = []
    for seed in range(successes + failures):
        won = seed < successes
        record = episode(page=WON if won else LOST, thought=f"Try {task} {seed}.")
        (line,) = dump_lines([record])
        made.append(
            Episode.objects.create(
                rollout=rollout, family="toys", task=task, seed=seed, state=Episode.State.DONE,
                reward=float(won), steps=3, outcome="finished",
                trajectory=pictures.store().put(line.encode()),
            )
        )  # fmt: skip
    return made
