"""What a run of each kind is made from, and what is wrong with it: by field, before anything is queued."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.models import Deployment
from annotation.session import pictures
from blobs import BlobError
from training.evaluations.results import SOLVED
from training.models import Checkpoint, Dataset, Episode, Rollout, Run
from training.rollouts import record
from trajectory import FormatError, Outcome

LOOKED_AT = 3  # episodes of a rollout whose tokens are looked for
Kind = Run.Kind
Errors = dict[str, str]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run starts from; which of them a kind takes is in CHECKS.

    `mixed` and `sources` come with their weights: how often a dataset's rows come beside the main
    one's (which is 1), and the share of a checkpoint in a merge. `tasks` are (family, task).
    """

    base: Checkpoint | None = None
    dataset: Dataset | None = None
    mixed: Sequence[tuple[Dataset, float]] = ()
    rollout: Rollout | None = None
    critic: Checkpoint | None = None
    deployment: Deployment | None = None
    sources: Sequence[tuple[Checkpoint, float]] = ()
    tasks: Sequence[tuple[str, str]] = ()


def wrong(kind: str, given: Inputs, config: Mapping[str, Any]) -> Errors:
    """Return what is wrong with what a run would start from, by field; {} where nothing is."""
    errors = _foreign(kind, given)
    if kind != Kind.MERGE:
        errors |= _base(given.base)
    if errors.keys() & {"base"}:
        return errors
    return errors | CHECKS[kind](kind, given, config)


def equal_parts(count: int) -> list[float]:
    """Return `count` weights that add up to 1."""
    return [1 / count] * count


def root(checkpoint: Checkpoint) -> Checkpoint:
    """Return the weights that all of a checkpoint's training began from."""
    while checkpoint.parent is not None:
        checkpoint = checkpoint.parent
    return checkpoint


def common_root(sources: Sequence[Checkpoint]) -> Checkpoint | None:
    """Return the checkpoint that all of `sources` were trained from, None where there is none."""
    roots = {root(source).pk: root(source) for source in sources}
    return next(iter(roots.values())) if len(roots) == 1 else None


def needs_critic(config: Mapping[str, Any]) -> bool:
    """Whether an RL run of this configuration refuses to start without a good critic."""
    return config.get("advantage", "gae") == "gae" and config.get("any_critic", "no") != "yes"


# -- what every kind asks -------------------------------------------------------------------------

TAKES = {
    Kind.SFT: {"base", "dataset", "mixed"},
    Kind.CT: {"base", "dataset", "mixed"},
    Kind.VALUE: {"base", "rollout"},
    Kind.PPO: {"base", "critic", "tasks", "deployment"},
    Kind.ORM: {"base", "rollout", "dataset"},
    Kind.MERGE: {"base", "sources"},
}
"""The fields of Inputs that each kind looks at."""


def _foreign(kind: str, given: Inputs) -> Errors:
    takes = TAKES[Run.Kind(kind)]
    return {
        name: f"a {kind} run takes none"
        for name in Inputs.__dataclass_fields__
        if name not in takes and getattr(given, name)
    }


def _base(base: Checkpoint | None) -> Errors:
    if base is None:
        return {"base": "choose the checkpoint to start from"}
    if base.role != Checkpoint.Role.POLICY:
        return {"base": f"{base.version} is a critic: it can't act, start from a policy"}
    if base.erased_at:
        return {"base": _erased(base)}
    return {}


def _erased(checkpoint: Checkpoint) -> str:
    return (
        f"{checkpoint.version} was trained on data that was deleted on {checkpoint.erased_at:%Y-%m-%d}:"
        " start from an earlier one, or train again without it"
    )


# -- datasets -------------------------------------------------------------------------------------


def _fixed_rows(kind: str, given: Inputs, config: Mapping[str, Any]) -> Errors:
    errors: Errors = {}
    dataset = given.dataset
    if dataset is None:
        errors["dataset"] = "choose what it learns from"
    elif dataset.erased_at:
        errors["dataset"] = _emptied(dataset)
    elif dataset.pool == Dataset.Pool.GENERAL:
        errors["dataset"] = (
            f"{dataset.name} is general data: choose a dataset of the {kind.upper()} pool and mix it in"
        )
    elif dataset.pool != kind:
        errors["dataset"] = f"{dataset.name} is of the {dataset.pool.upper()} pool, not for {kind}"
    if wrong_mix := _mix(given):
        errors["mixed"] = wrong_mix
    return errors


def _emptied(dataset: Dataset) -> str:
    return f"{dataset.name} held data that was deleted on {dataset.erased_at:%Y-%m-%d}: freeze a new one"


def _mix(given: Inputs) -> str:
    seen = {given.dataset.pk} if given.dataset else set()
    for dataset, weight in given.mixed:
        if dataset.pk in seen:
            return f"{dataset.name} is there twice"
        seen.add(dataset.pk)
        if dataset.erased_at:
            return _emptied(dataset)
        if not (math.isfinite(weight) and weight > 0):
            return f"the weight of {dataset.name} is {weight:g}: say more than 0"
    return ""


# -- episodes -------------------------------------------------------------------------------------


def _value(kind: str, given: Inputs, config: Mapping[str, Any]) -> Errors:
    assert given.base is not None
    rollout = given.rollout
    if rollout is None:
        return {"rollout": f"choose a rollout that {given.base.version} played"}
    if not rollout.ended:
        return {"rollout": f"{rollout.name} is still {rollout.state}: wait for its end"}
    done = judged(rollout)
    played = {
        version for versions in done.values_list("versions", flat=True) for version in versions
    }
    played = played or {rollout.deployment.version}
    if not done.exists():
        return {"rollout": f"{rollout.name} has no finished episode"}
    if played != {given.base.version}:
        return {
            "rollout": f"{rollout.name} was played by {', '.join(sorted(played)) or 'nobody known'}, "
            f"not by {given.base.version}: a critic is taught on its own policy's episodes"
        }
    if why := without_tokens(rollout):
        return {"rollout": why}
    return {}


def judged(rollout: Rollout) -> Any:
    """Return the episodes of a rollout from which something can be learnt: ended, with a reward."""
    done = rollout.episodes.filter(state=Episode.State.DONE).exclude(reward=None)
    return done.exclude(trajectory="").exclude(outcome=Outcome.ENV_FAILURE.value)


def without_tokens(rollout: Rollout) -> str:
    """Return why the first episodes can't be learnt from token by token, "" where they can."""
    store = pictures.store()
    for episode in judged(rollout).order_by("pk")[:LOOKED_AT]:
        try:
            kept = record.read(episode, store)
        except (BlobError, FormatError) as error:
            return f"episode {episode.pk} can't be read: {error}"
        if kept and any(step.sample is None or not step.sample.output_ids for step in kept.steps):
            return (
                f"episode {episode.pk} has no token ids: let a deployment of our own policy server "
                "play, others don't say what they sampled"
            )
    return ""


def _orm(kind: str, given: Inputs, config: Mapping[str, Any]) -> Errors:
    rollout, dataset = given.rollout, given.dataset
    if dataset is not None and dataset.erased_at:
        return {"dataset": _emptied(dataset)}
    if dataset is not None and dataset.pool == Dataset.Pool.GENERAL:
        return {"dataset": f"{dataset.name} is general data: nothing in it was judged"}
    if rollout is None:
        return (
            {}
            if dataset
            else {"rollout": "choose a rollout or a dataset whose episodes were judged"}
        )
    if rollout.purpose == Rollout.Purpose.EVALUATE:
        return {
            "rollout": f"{rollout.name} evaluates: what a judge is tested on it must not know, choose "
            "a rollout that collects"
        }
    if not rollout.ended:
        return {"rollout": f"{rollout.name} is still {rollout.state}: wait for its end"}
    good = judged(rollout).filter(reward__gte=SOLVED).count()
    bad = judged(rollout).filter(reward__lt=SOLVED).count()
    if dataset or (good and bad):
        return {}
    return {
        "rollout": "it takes successes and failures to tell them apart: "
        f"{rollout.name} has {good} and {bad}"
    }


# -- reinforcement learning -----------------------------------------------------------------------


def _ppo(kind: str, given: Inputs, config: Mapping[str, Any]) -> Errors:
    assert given.base is not None
    errors = {} if given.tasks else {"tasks": "name at least one family or task, or choose a suite"}
    critic = given.critic
    if critic is not None and critic.role != Checkpoint.Role.CRITIC:
        return errors | {"critic": f"{critic.version} is a policy: choose a pretrained critic"}
    if critic is not None and critic.erased_at:
        return errors | {"critic": _erased(critic)}
    if not needs_critic(config):
        return errors
    if critic is None:
        errors["critic"] = (
            f"pretrain a critic of {given.base.version} first (a value run), or start anyway with a "
            "fresh one"
        )
    elif not critic_of(critic, given.base):
        errors["critic"] = (
            f"{critic.version} belongs to another policy than {given.base.version}: pretrain one on "
            "its episodes, or start anyway"
        )
    else:
        found, least = explained(critic), float(config["min_explained_variance"])
        if found is None or found < least:
            errors["critic"] = (
                f"{critic.version} explains {'nothing known' if found is None else f'{found:.3f}'} of "
                f"the returns' variance, {least:g} is asked: pretrain it longer, or start anyway"
            )
    return errors


def critic_of(critic: Checkpoint, actor: Checkpoint) -> bool:
    """Whether a critic was taught on the episodes of exactly these weights."""
    return bool(actor.sha256) and critic.manifest.get("actor") == actor.sha256


def explained(critic: Checkpoint) -> float | None:
    """Return the explained variance that a critic ended with; 1 is perfect, 0 is the mean."""
    value = critic.manifest.get("explained_variance")
    return float(value) if isinstance(value, int | float) else None


# -- merging --------------------------------------------------------------------------------------

FAMILY = ("kind", "base", "dialect", "observation")
"""What two manifests must agree on for their weights to be added up."""


def _merge(kind: str, given: Inputs, config: Mapping[str, Any]) -> Errors:
    checkpoints = [checkpoint for checkpoint, _ in given.sources]
    weights = [weight for _, weight in given.sources]
    if len(checkpoints) < 2:
        return {"sources": "choose at least two checkpoints"}
    if len({checkpoint.pk for checkpoint in checkpoints}) < len(checkpoints):
        return {"sources": "each checkpoint once"}
    for checkpoint in checkpoints:
        if errors := _base(checkpoint):
            return {"sources": errors["base"]}
    for checkpoint, weight in given.sources:
        if not (math.isfinite(weight) and weight >= 0):
            return {"sources": f"the weight of {checkpoint.version} is {weight:g}: say 0 or more"}
    if not math.isclose(sum(weights), 1, abs_tol=1e-6):
        return {
            "sources": f"the weights add up to {sum(weights):g}, not to 1; leave them empty for equal parts"
        }
    first = checkpoints[0]
    for other in checkpoints[1:]:
        for name in FAMILY:
            if first.manifest.get(name) != other.manifest.get(name):
                return {
                    "sources": f"{first.version} and {other.version} are no family: their {name} is "
                    f"{first.manifest.get(name)} and {other.manifest.get(name)}"
                }
    if common_root(checkpoints) is None:
        names = sorted({root(checkpoint).version for checkpoint in checkpoints})
        return {"sources": f"they go back to different weights: {', '.join(names)}"}
    return {}


CHECKS: dict[str, Callable[[str, Inputs, Mapping[str, Any]], Errors]] = {
    Kind.SFT: _fixed_rows,
    Kind.CT: _fixed_rows,
    Kind.VALUE: _value,
    Kind.PPO: _ppo,
    Kind.ORM: _orm,
    Kind.MERGE: _merge,
}
