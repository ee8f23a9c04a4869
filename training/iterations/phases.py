"""The phases of an iteration in their order, and its last one: the decision."""

from __future__ import annotations

from training.errors import Refused
from training.evaluations import evaluations
from training.iterations import learning, playing
from training.iterations.decision import KEPT, PROMOTED, decide
from training.iterations.phase import Name, Phase, config_of
from training.models import Checkpoint, Iteration
from training.weights import promotions

# -- deciding -------------------------------------------------------------------------------------


def _decide(row: Iteration, prepared: object) -> None:
    """Compare, and promote a candidate that is better; everything in the driver's transaction."""
    if row.promotion is not None:
        return  # decided before; what came after it is tried again
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
        Phase(Name.COLLECT, "rollout", "policy", begin=playing.collect, look=lambda row: playing.look_at_rollout(row.rollout)),
        Phase(Name.BASELINE, "baseline", "policy", begin=playing.baseline, look=lambda row: playing.look_at_evaluation(row.baseline)),
        Phase(Name.FREEZE, prepare=learning.freeze, begin=learning.link_datasets, look=learning.look_at_datasets),
        Phase(Name.CT, "ct_run", skip=learning.skip_fixed("ct", "ct_dataset"), begin=learning.launch_fixed("ct", "ct_dataset"), look=learning.look_at_run("ct_run")),
        Phase(Name.SFT, "sft_run", skip=learning.skip_fixed("sft", "sft_dataset"), begin=learning.launch_fixed("sft", "sft_dataset"), look=learning.look_at_run("sft_run")),
        Phase(Name.PLAY, "critic_rollout", "candidate", skip=learning.skip_critic, begin=playing.play_for_critic, look=lambda row: playing.look_at_rollout(row.critic_rollout)),
        Phase(Name.VALUE, "value_run", skip=learning.skip_critic, begin=learning.launch_value, look=learning.look_at_run("value_run")),
        Phase(Name.RL, "rl_run", skip=learning.skip_rl, begin=learning.launch_rl, look=learning.look_at_run("rl_run")),
        Phase(Name.EVALUATE, "evaluation", "candidate", skip=playing.no_candidate, begin=playing.evaluate_candidate, look=lambda row: playing.look_at_evaluation(row.evaluation)),
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
    return row.policy if phase.serves == "policy" else learning.start_of(row)
