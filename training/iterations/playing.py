"""The phases in which a policy plays: to collect, for its critic, and to be evaluated."""

from __future__ import annotations

from django.db.models import Exists, OuterRef

from training.errors import WrongState
from training.evaluations import evaluations, suites
from training.iterations.phase import Look, Name, child_name, config_of
from training.iterations.schedule import fresh_seeds
from training.models import Episode, Evaluation, Iteration, Rollout
from training.rollouts import rollouts

# -- playing --------------------------------------------------------------------------------------


def collect(row: Iteration, prepared: object) -> None:
    row.rollout = _play(row, Name.COLLECT, every_reply=False)


def play_for_critic(row: Iteration, prepared: object) -> None:
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


def look_at_rollout(rollout: Rollout | None) -> Look:
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


def baseline(row: Iteration, prepared: object) -> None:
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
    # Where every environment broke nothing was measured: to be tried again, not to be known.
    judged = Episode.objects.filter(state=Episode.State.DONE).exclude(reward=None)
    return rows.filter(Exists(judged.filter(rollout=OuterRef("rollout")))).order_by("-pk").first()


def evaluate_candidate(row: Iteration, prepared: object) -> None:
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


def look_at_evaluation(evaluation: Evaluation | None) -> Look:
    assert evaluation is not None
    seen = look_at_rollout(evaluation.rollout)
    if seen.state == "done":
        evaluations.settle(evaluation)
        overall = evaluation.results["overall"]
        return Look("done", seen.note, {"success": overall["success"], "reward": overall["reward"]})
    return seen


def no_candidate(row: Iteration) -> str:
    return "" if row.candidate else "nothing was trained, so there is no candidate"


def unpause(rollout: Rollout) -> None:
    """Let a rollout go on that paused because the policy was away; one paused by hand stays so."""
    if rollout.state == Rollout.State.PAUSED and rollout.error:
        try:
            rollouts.resume(rollout)
        except WrongState:
            pass
