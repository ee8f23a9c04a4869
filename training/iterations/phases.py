"""The phases of an iteration: how each begins, and how it is seen to have ended.

Nothing here writes the iteration: `training.iterations.driver` calls these and keeps what they say.
`begin` makes the phase's row and links it (in the driver's transaction, under the iteration's lock);
`look` reads that row. What takes long and needs no lock is in `prepare`, which may be done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from training import datasets, promotions, runs
from training.errors import EmptyDataset, NameTaken, Refused, WrongState
from training.evaluations import evaluations, suites
from training.inputs import critic_of, explained, needs_critic
from training.iterations import config as configs
from training.iterations.config import IterationConfig
from training.iterations.decision import KEPT, PROMOTED, decide
from training.iterations.schedule import due, fresh_seeds
from training.models import Checkpoint, Dataset, Evaluation, Iteration, Rollout, Run
from training.rollouts import rollouts
from training.selection import Filters

Name = Iteration.Phase


@dataclass(frozen=True, slots=True)
class Look:
    """What a phase's row says: is it over, and how? `figures` are kept on the iteration."""

    state: Literal["going", "done", "failed"]
    note: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase. `link` is the iteration's field that holds what it made; `serves` whose server it needs.

    `skip` says why the phase is left out of this iteration, "" where it is not.
    """

    name: str
    link: str = ""
    serves: Literal["", "policy", "candidate"] = ""
    skip: Callable[[Iteration], str] = lambda row: ""
    prepare: Callable[[Iteration], object] = lambda row: None
    begin: Callable[[Iteration, Any], None] = lambda row, prepared: None
    look: Callable[[Iteration], Look] = lambda row: Look("done")


def config_of(row: Iteration) -> IterationConfig:
    return configs.read(row.config)


def child_name(row: Iteration, phase: str) -> str:
    """Return the name of what a phase makes; another one after each time it was tried in vain."""
    tries = len(row.phases.get(phase, {}).get("tries", ()))
    return f"{row.name}-{phase}" + (f"-{tries + 1}" if tries else "")


# -- playing --------------------------------------------------------------------------------------


def _collect(row: Iteration, prepared: object) -> None:
    row.rollout = _play(row, Name.COLLECT, every_reply=False)


def _play_for_critic(row: Iteration, prepared: object) -> None:
    # A critic values what the policy does, unreadable replies included.
    row.critic_rollout = _play(row, Name.PLAY, every_reply=True)


def _play(row: Iteration, phase: str, *, every_reply: bool) -> Rollout:
    config = config_of(row)
    assert row.server is not None
    return rollouts.create(
        name=child_name(row, phase),
        deployment=row.server,
        tasks=config.wanted,
        seeds=seeds_of(row),
        repeats=config.samples,
        config={
            "temperature": config.temperature,
            "max_steps": config.max_steps,
            "every_reply": every_reply,
        },
        by=row.created_by,
    )


def seeds_of(row: Iteration) -> list[int]:
    """Return the seeds that the iteration collects; none of them is evaluated."""
    config = config_of(row)
    return fresh_seeds(row.first_seed, config.seeds, suites.seeds(config.evaluation_seeds))


def _look_at_rollout(rollout: Rollout | None) -> Look:
    assert rollout is not None
    done = rollout.episodes.filter(state="done").exclude(reward=None)
    if not rollout.ended:
        ended = rollout.episodes.exclude(state__in=("waiting", "running")).count()
        paused = f"; paused: {rollout.error or 'by hand'}" if rollout.state == "paused" else ""
        return Look("going", f"{ended} of {rollout.total} episodes{paused}")
    judged, solved = done.count(), done.filter(reward__gte=1).count()
    if rollout.state != Rollout.State.DONE:
        return Look("failed", f"{rollout.name} is {rollout.state}: {rollout.error or 'by hand'}")
    if not judged:
        return Look(
            "failed", f"no episode of {rollout.name} could be judged: every environment broke"
        )
    return Look("done", f"{judged} episodes, {solved} solved", {"judged": judged, "solved": solved})


# -- evaluating -----------------------------------------------------------------------------------


def _baseline(row: Iteration, prepared: object) -> None:
    row.baseline = _known_baseline(row) or _evaluate(row, Name.BASELINE)


def _known_baseline(row: Iteration) -> Evaluation | None:
    """Return the evaluation that measured M(t) in this very way before, where there is one."""
    config = config_of(row)
    suite = suites.load(config.suite)
    rows = Evaluation.objects.filter(
        suite_checksum=suite.checksum,
        version=row.policy.version,
        repeats=config.repeats,
        max_steps=config.max_steps,
        seeds=list(suites.seeds(config.evaluation_seeds)),
        rollout__deployment=row.server,
        rollout__state=Rollout.State.DONE,
    )
    return rows.order_by("-pk").first()


def _evaluate_candidate(row: Iteration, prepared: object) -> None:
    row.evaluation = _evaluate(row, Name.EVALUATE)


def _evaluate(row: Iteration, phase: str) -> Evaluation:
    config = config_of(row)
    assert row.server is not None
    return evaluations.begin(
        name=child_name(row, phase),
        suite=suites.load(config.suite),
        deployment=row.server,
        seeds=list(suites.seeds(config.evaluation_seeds)),
        repeats=config.repeats,
        max_steps=config.max_steps,
        by=row.created_by,
    )


def _look_at_evaluation(evaluation: Evaluation | None) -> Look:
    assert evaluation is not None
    seen = _look_at_rollout(evaluation.rollout)
    if seen.state == "done":
        evaluations.settle(evaluation)
        overall = evaluation.results["overall"]
        return Look("done", seen.note, {"success": overall["success"], "reward": overall["reward"]})
    return seen


def _no_candidate(row: Iteration) -> str:
    return "" if row.candidate else "nothing was trained, so there is no candidate"


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


def _freeze(row: Iteration) -> dict[str, Dataset | None]:
    """Freeze both pools under names that follow from the iteration, or find what was frozen before.

    An empty pool is None: an iteration without a single success, or failure, is none that failed.
    """
    found: dict[str, Dataset | None] = {}
    filters = filters_of(row)
    for link, pool in POOLS:
        name = child_name(row, Name.FREEZE) + f"-{pool}"
        known = Dataset.objects.filter(name=name).first()
        if known is None:
            try:
                known = datasets.freeze(name=name, pool=pool, filters=filters, by=row.created_by)
            except EmptyDataset:
                known = None
            except NameTaken:  # another process was as fast
                known = Dataset.objects.get(name=name)
        if known is not None and Filters.from_json(known.filters) != filters:
            raise NameTaken(f"there is another dataset called {name!r}: try again with a new name")
        found[link] = known
    return found


def _link_datasets(row: Iteration, prepared: dict[str, Dataset | None]) -> None:
    row.sft_dataset, row.ct_dataset = prepared["sft_dataset"], prepared["ct_dataset"]


def _look_at_datasets(row: Iteration) -> Look:
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


def _skip_fixed(kind: str, link: str) -> Callable[[Iteration], str]:
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


def _launch_fixed(kind: str, link: str) -> Callable[[Iteration, object], None]:
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


def _look_at_run(link: str) -> Callable[[Iteration], Look]:
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


def _skip_rl(row: Iteration) -> str:
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


def _skip_critic(row: Iteration) -> str:
    if reason := _skip_rl(row):
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


def _launch_value(row: Iteration, prepared: object) -> None:
    row.value_run = runs.launch(
        kind=Run.Kind.VALUE, name=child_name(row, Name.VALUE), base=start_of(row),
        rollout=row.critic_rollout, config=config_of(row).run_config("value"), by=row.created_by,
    )  # fmt: skip


def _launch_rl(row: Iteration, prepared: object) -> None:
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


# -- deciding -------------------------------------------------------------------------------------


def _decide(row: Iteration, prepared: object) -> None:
    """Compare, and promote a candidate that is better; everything in the driver's transaction."""
    if row.candidate is None or row.evaluation is None or row.baseline is None:
        words = f"Nothing was trained, so {row.policy.version} stays in force."
        row.decision = {"verdict": KEPT, "better": False, "words": words}
        return
    found = decide(evaluations.beside(row.baseline, row.evaluation), level=config_of(row).level)
    verdict = KEPT
    after = f" {row.policy.version} stays in force; {row.candidate.version} is kept."
    if found["better"]:
        row.deployment.refresh_from_db()
        if row.deployment.version != row.policy.version:
            after = (
                f" It was not promoted: {row.deployment.name} serves {row.deployment.version} by now, "
                f"which was put there while this iteration compared with {row.policy.version}."
            )
        else:
            try:
                row.promotion = promotions.promote(
                    row.candidate, deployment=row.deployment, by=row.created_by
                )
                verdict = PROMOTED
                after = f" {row.candidate.version} was put behind {row.deployment.name}."
            except Refused as error:
                after = f" It was not promoted: {error}."
    row.decision = {**found, "verdict": verdict, "words": found["words"] + after}


PHASES: dict[str, Phase] = {
    phase.name: phase
    for phase in (
        Phase(Name.DEPLOY, serves="policy"),
        Phase(Name.COLLECT, "rollout", "policy", begin=_collect, look=lambda row: _look_at_rollout(row.rollout)),
        Phase(Name.BASELINE, "baseline", "policy", begin=_baseline, look=lambda row: _look_at_evaluation(row.baseline)),
        Phase(Name.FREEZE, prepare=_freeze, begin=_link_datasets, look=_look_at_datasets),
        Phase(Name.CT, "ct_run", skip=_skip_fixed("ct", "ct_dataset"), begin=_launch_fixed("ct", "ct_dataset"), look=_look_at_run("ct_run")),
        Phase(Name.SFT, "sft_run", skip=_skip_fixed("sft", "sft_dataset"), begin=_launch_fixed("sft", "sft_dataset"), look=_look_at_run("sft_run")),
        Phase(Name.PLAY, "critic_rollout", "candidate", skip=_skip_critic, begin=_play_for_critic, look=lambda row: _look_at_rollout(row.critic_rollout)),
        Phase(Name.VALUE, "value_run", skip=_skip_critic, begin=_launch_value, look=_look_at_run("value_run")),
        Phase(Name.RL, "rl_run", skip=_skip_rl, begin=_launch_rl, look=_look_at_run("rl_run")),
        Phase(Name.EVALUATE, "evaluation", "candidate", skip=_no_candidate, begin=_evaluate_candidate, look=lambda row: _look_at_evaluation(row.evaluation)),
        Phase(Name.DECIDE, begin=_decide),
    )
}  # fmt: skip
"""In their order."""

ORDER = (*PHASES, str(Name.DONE))

TRAINS = {Name.CT: "ct_run", Name.SFT: "sft_run", Name.RL: "rl_run"}
"""The phases that leave a new candidate, with the run that made it."""


def model_of(row: Iteration) -> Checkpoint | None:
    """Return what the iteration's server should serve in this phase; None where it needs none."""
    if row.state != Iteration.State.RUNNING or row.phase not in PHASES:
        return None
    phase = PHASES[row.phase]
    if not phase.serves or phase.skip(row):
        return None
    return row.policy if phase.serves == "policy" else start_of(row)


def unpause(rollout: Rollout) -> None:
    """Let a rollout go on that paused because the policy was away; one paused by hand stays so."""
    if rollout.state == Rollout.State.PAUSED and rollout.error:
        try:
            rollouts.resume(rollout)
        except WrongState:
            pass
