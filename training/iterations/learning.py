"""The phases in which something is learnt: freezing the data, CT, SFT, the critic, RL."""

from __future__ import annotations

from collections.abc import Callable

from training.data import datasets
from training.data.selection import Filters
from training.errors import EmptyDataset
from training.iterations.phase import Look, Name, child_name, config_of
from training.iterations.schedule import due
from training.models import Checkpoint, Dataset, Iteration, Run
from training.runs import runs
from training.runs.inputs import critic_of, explained, needs_critic

# -- data -----------------------------------------------------------------------------------------

POOLS = (("sft_dataset", Dataset.Pool.SFT), ("ct_dataset", Dataset.Pool.CT))


def filters_of(row: Iteration) -> Filters:
    """Return what D_SFT(t+1) and D_CT(t+1) are frozen from: all that the chain has collected so far.

    D(t+1) is D(t) with what is new (UI-TARS-2, section 2.3), as it is frozen from all of it again.
    """
    config = config_of(row)
    names, here = [], row
    while True:
        if here.rollout is not None:
            names.append(here.rollout.name)
        if here.previous is None:
            break
        here = here.previous
    return Filters(
        source="" if config.sessions == "yes" else "episodes",
        rollouts=tuple(reversed(names)),
        per_seed=config.per_seed,
    )


def freeze(row: Iteration) -> dict[str, Dataset | None]:
    """Freeze both pools; an empty one is None.

    An iteration without a single success, or without a failure, is none that failed.
    """
    found: dict[str, Dataset | None] = {}
    for link, pool in POOLS:
        name = child_name(row, Name.FREEZE) + f"-{pool}"
        try:
            found[link] = datasets.freeze(
                name=name, pool=pool, filters=filters_of(row), by=row.created_by
            )
        except EmptyDataset:
            found[link] = None
    return found


def link_datasets(row: Iteration, prepared: dict[str, Dataset | None]) -> None:
    row.sft_dataset, row.ct_dataset = prepared["sft_dataset"], prepared["ct_dataset"]


def look_at_datasets(row: Iteration) -> Look:
    sizes = {pool: _size(getattr(row, link)) for link, pool in POOLS}
    words = ", ".join(f"D_{pool.upper()} {size} trajectories" for pool, size in sizes.items())
    return Look("done", words, {str(pool): size for pool, size in sizes.items()})


def _size(dataset: Dataset | None) -> int:
    return dataset.trajectories if dataset else 0


# -- training -------------------------------------------------------------------------------------


def start_of(row: Iteration) -> Checkpoint:
    """Return what the next training of this iteration goes on from."""
    if row.candidate is not None:
        return row.candidate
    return row.base if config_of(row).start == "base" else row.policy


def skip_fixed(kind: str, link: str) -> Callable[[Iteration], str]:
    def skip(row: Iteration) -> str:
        every = getattr(config_of(row), f"{kind}_every")
        if not due(row.number, every):
            return _not_due(kind.upper(), every, row.number)
        dataset = getattr(row, link)
        if dataset is None:
            what = "successes" if kind == "sft" else "failures"
            return f"D_{kind.upper()} is empty: there are no {what} to learn from"
        return ""

    return skip


def launch_fixed(kind: str, link: str) -> Callable[[Iteration, object], None]:
    def begin(row: Iteration, prepared: object) -> None:
        config = config_of(row)
        mixed = [
            (one, weight)
            for name, weight in config.mixed
            for one in Dataset.objects.filter(name=name)
            # A dataset of the other pool is for the other kind of run.
            if one.pool in (kind, Dataset.Pool.GENERAL)
        ]
        run = runs.launch(
            kind=kind, name=child_name(row, kind), dataset=getattr(row, link), base=start_of(row),
            mixed=mixed, config=config.run_config(kind), by=row.created_by,
        )  # fmt: skip
        setattr(row, f"{kind}_run", run)

    return begin


def look_at_run(link: str) -> Callable[[Iteration], Look]:
    def look(row: Iteration) -> Look:
        run: Run = getattr(row, link)
        if not run.ended:
            of = f" of {run.total_steps}" if run.total_steps else ""
            return Look("going", f"{run.state}, step {run.step}{of}")
        if run.state != Run.State.SUCCEEDED:
            return Look("failed", f"{run.name} {run.state}: {_first_line(run.error) or 'by hand'}")
        made = newest(run)
        if made is None:
            return Look("failed", f"{run.name} ended without a checkpoint")
        return Look("done", f"{run.step} steps, {made.version}")

    return look


def newest(run: Run) -> Checkpoint | None:
    """Return the last checkpoint of a run that is what the run is for: a critic, or a policy."""
    role = Checkpoint.Role.CRITIC if run.kind == Run.Kind.VALUE else Checkpoint.Role.POLICY
    return run.checkpoints.filter(role=role).order_by("-step").first()


def skip_rl(row: Iteration) -> str:
    config = config_of(row)
    if not due(row.number, config.rl_every):
        return _not_due("RL", config.rl_every, row.number)
    if row.value_run is not None and needs_critic(config.run_config("ppo")):
        made = newest(row.value_run)
        if made is not None and good_critic(row) is None:
            return (
                f"{made.version} explains {explained(made) or 0.0:.2f} of the returns, too little to "
                "learn from: pretrain the critic longer or on more episodes"
            )
    return ""


def skip_critic(row: Iteration) -> str:
    if reason := skip_rl(row):
        return reason
    if config_of(row).run_config("ppo")["advantage"] != "gae":
        return "RL compares the episodes of a group and asks no critic"
    known = good_critic(row)
    if known is not None:
        return f"{known.version} knows this very policy: it explains {explained(known):.2f} of its returns"
    return ""


def good_critic(row: Iteration) -> Checkpoint | None:
    """Return the best critic of what RL starts from, None where none explains enough."""
    least = float(config_of(row).run_config("ppo")["min_explained_variance"])
    actor = start_of(row)
    rows = Checkpoint.objects.filter(
        role=Checkpoint.Role.CRITIC, manifest__actor=actor.sha256, erased_at=None
    )
    good = [one for one in rows if critic_of(one, actor) and (explained(one) or 0.0) >= least]
    return max(good, key=lambda one: explained(one) or 0.0, default=None)


def launch_value(row: Iteration, prepared: object) -> None:
    row.value_run = runs.launch(
        kind=Run.Kind.VALUE, name=child_name(row, Name.VALUE), base=start_of(row),
        rollout=row.critic_rollout, config=config_of(row).run_config("value"), by=row.created_by,
    )  # fmt: skip


def launch_rl(row: Iteration, prepared: object) -> None:
    config = config_of(row)
    wanted = config.run_config("ppo")
    critic = None
    if wanted["advantage"] == "gae":
        # Where a fresh critic is accepted too, the one that was pretrained is better than none.
        critic = good_critic(row) or (newest(row.value_run) if row.value_run else None)
    row.critic = critic
    row.rl_run = runs.launch(
        kind=Run.Kind.PPO, name=child_name(row, Name.RL), base=start_of(row), critic=critic,
        tasks=config.wanted, config=wanted, by=row.created_by,
        deployment=None if row.own_server else row.server,
    )  # fmt: skip


def _not_due(what: str, every: int, number: int) -> str:
    if not every:
        return f"{what} is never due"
    return f"{what} is due once in {every} iterations, this is number {number}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""
