"""The flywheel's state machine: every way through it, and what is left wherever it is killed."""

# Fixtures come by import, and are named as parameters.
# ruff: noqa: F811

from __future__ import annotations

import pytest

from tests.training.iteration_parts import (  # noqa: F401
    CONFIG,
    begin,
    box,
    now,
    partner,
    place,
    play,
    toys,
    train,
    turn,
    whole,
)
from training.errors import BadConfig, WrongState
from training.iterations import driver, iterations, serving
from training.models import Checkpoint, Iteration, Promotion, Rollout, Run
from training.rollouts import rollouts
from training.runs import runs
from training.weights import promotions

pytestmark = pytest.mark.django_db

State = Iteration.State
PATH = ["deploy", "collect", "baseline", "freeze", "ct", "sft", "play", "value", "rl", "evaluate", "decide"]  # fmt: skip


def states(row: Iteration) -> dict[str, str]:
    return {name: record["state"] for name, record in row.phases.items()}


# -- the whole way -------------------------------------------------------------------------------


def test_a_better_candidate_is_promoted_with_what_was_measured(begin, partner, box):
    row = whole(begin())
    assert row.state == State.DONE, row.error
    assert set(row.phases) == set(PATH)
    skipped = {name for name, state in states(row).items() if state == "skipped"}
    assert skipped == {"ct", "play", "value", "rl"}
    assert "due once in 2 iterations, this is number 1" in row.phases["ct"]["note"]
    assert row.rollout.episodes.count() == 4 and row.sft_dataset.trajectories == 2
    assert row.ct_dataset.trajectories == 2, "what failed is not wasted"
    assert row.phases["freeze"]["figures"] == {"sft": 2, "ct": 2}
    assert row.sft_run.base == box and row.sft_run.dataset == row.sft_dataset
    assert row.candidate.run == row.sft_run
    assert row.evaluation.seeds == row.baseline.seeds == list(range(10))
    assert row.evaluation.version == row.candidate.version and row.baseline.version == "box"
    found = row.decision
    assert found["verdict"] == "promoted" and found["pairs"] == 20 and found["only_after"] == 12
    assert found["p"] == pytest.approx(0.5**12)
    assert found["difference"]["value"] == pytest.approx(0.6)
    partner.refresh_from_db()
    assert partner.version == row.candidate.version
    assert row.promotion.checkpoint == row.candidate and row.promotion.previous == box


def test_collected_seeds_are_none_that_are_evaluated_and_none_comes_twice(begin):
    row = whole(begin(count=2))
    first = set(row.rollout.episodes.values_list("seed", flat=True))
    following = turn(row.following)
    second = set(following.rollout.episodes.values_list("seed", flat=True))
    assert first == {10, 11} and second == {12, 13}


def test_a_candidate_that_is_no_better_is_kept_and_said_so(begin, partner):
    row = whole(begin(), before=5, after=6)
    assert row.state == State.DONE and row.candidate is not None
    assert row.decision["verdict"] == "kept" and row.promotion is None
    assert "Not shown to be better" in row.decision["words"]
    assert "box stays in force" in row.decision["words"]
    partner.refresh_from_db()
    assert partner.version == "box" and not Promotion.objects.exists()


def test_a_worse_candidate_is_kept(begin):
    row = whole(begin(), before=6, after=2)
    assert row.decision["verdict"] == "kept" and "Not better" in row.decision["words"]


def test_what_somebody_promoted_meanwhile_is_not_replaced(begin, partner, box):
    row = begin()
    turn(row)
    other = Checkpoint.objects.create(version="other", uri="/o", manifest=box.manifest)
    promotions.promote(other, deployment=partner, by=None)
    row = whole(row)
    assert row.decision["better"] and row.decision["verdict"] == "kept"
    assert "serves other by now" in row.decision["words"]


def test_the_next_one_starts_from_what_is_promoted_and_ct_comes_in_its_turn(begin, box):
    first = whole(begin(count=2))
    second = whole(first.following, after=10)
    assert (second.number, second.remaining, second.policy) == (2, 0, first.candidate)
    assert second.base == box, "it is trained from the shared start again"
    assert second.ct_run.base == box and second.sft_run.base.run == second.ct_run
    assert second.sft_dataset.trajectories == 4, "D(t+1) holds D(t)"
    assert second.server == first.server
    with pytest.raises(Iteration.DoesNotExist):
        _ = second.following


def test_after_a_promoted_ct_training_starts_from_it(begin):
    row = whole(begin(ct_every=1, count=2))
    assert row.decision["verdict"] == "promoted"
    assert row.following.base.run == row.ct_run


def test_training_from_m_t_is_a_choice(begin, box):
    row = whole(begin(start="policy", count=2))
    following = turn(row.following)
    play(following.rollout)
    play(turn(following).baseline.rollout, solved=3)
    assert turn(following).ct_run.base == row.candidate


def test_a_known_baseline_is_not_played_again(begin):
    row = whole(begin(count=2), before=5, after=6)  # kept: M(t) is the same
    following = turn(row.following)
    play(following.rollout)
    following = turn(following)
    assert following.baseline == row.baseline and following.phase == "ct"


def test_no_success_skips_sft_and_no_candidate_changes_nothing(begin, partner):
    row = turn(begin(tasks="toys/n20"))
    play(row.rollout)
    play(turn(row).baseline.rollout, solved=4)
    row = turn(row)
    assert row.state == State.DONE and row.sft_dataset is None and row.ct_dataset is not None
    assert "D_SFT is empty" in row.phases["sft"]["note"]
    assert states(row)["evaluate"] == "skipped"
    assert row.decision["words"] == "Nothing was trained, so box stays in force."


# -- reinforcement learning ----------------------------------------------------------------------


@pytest.fixture
def launched(monkeypatch):
    """Launch value and RL runs as bare rows: what they check has tests of its own."""
    launch, seen = runs.launch, {}

    def bare(*, kind, name, base, config, by, **more):
        if kind not in ("value", "ppo"):
            return launch(kind=kind, name=name, base=base, config=config, by=by, **more)
        seen[kind] = {"config": config, **more}
        return Run.objects.create(kind=kind, name=name, base=base, config=config)

    monkeypatch.setattr(runs, "launch", bare)
    return seen


def critic(run: Run, actor: Checkpoint, explains: float) -> Checkpoint:
    manifest = {"role": "critic", "actor": actor.sha256, "explained_variance": explains}
    Run.objects.filter(pk=run.pk).update(state=Run.State.SUCCEEDED, step=6)
    return Checkpoint.objects.create(
        version=f"{run.name}-step-6", run=run, role="critic", manifest=manifest, uri="/c", step=6
    )


def to_play(row: Iteration) -> Iteration:
    play(turn(row).rollout)
    play(turn(row).baseline.rollout, solved=4)
    train(turn(row).sft_run)
    row = turn(row)
    assert row.phase == "play"
    return row


@pytest.mark.usefixtures("launched")
def test_rl_gets_a_critic_of_its_own_policy_first(begin, launched):
    row = to_play(begin(rl_every=1, samples=2, changes="ppo.any_critic: no\nppo.updates: 5"))
    assert row.critic_rollout.config["every_reply"] and row.server.version == row.candidate.version
    play(row.critic_rollout)
    row = turn(row)
    assert launched["value"]["rollout"] == row.critic_rollout
    made = critic(row.value_run, row.candidate, 0.4)
    row = turn(row)
    assert row.phase == "rl" and launched["ppo"]["critic"] == made == row.critic
    assert launched["ppo"]["tasks"] == [("toys", "n2"), ("toys", "n20")]
    assert launched["ppo"]["config"]["updates"] == 5
    after_sft = row.candidate
    train(row.rl_run)
    row = turn(row)
    assert row.phase == "evaluate" and row.candidate.run == row.rl_run
    assert row.candidate.parent == after_sft


def test_a_critic_that_is_good_enough_is_not_made_again(begin):
    row = begin(rl_every=1, samples=2)
    play(turn(row).rollout)
    play(turn(row).baseline.rollout, solved=4)
    made = train(turn(row).sft_run)
    critic(Run.objects.create(name="v", kind="value"), made, 0.9)
    row = turn(row)
    assert row.phase == "rl" and states(row)["play"] == states(row)["value"] == "skipped"
    assert "explains 0.90" in row.phases["play"]["note"]
    run = row.rl_run
    assert (run.kind, run.base, run.critic) == ("ppo", made, row.critic)
    assert run.rollout.purpose == "train" and run.deployment != row.server


@pytest.mark.usefixtures("launched")
def test_a_poor_critic_leaves_rl_out_and_the_rest_goes_on(begin):
    row = to_play(begin(rl_every=1, samples=2, changes="ppo.any_critic: no"))
    play(row.critic_rollout)
    critic(turn(row).value_run, row.candidate, 0.02)
    row = turn(row)
    assert row.phase == "evaluate" and states(row)["rl"] == "skipped"
    assert "explains 0.02" in row.phases["rl"]["note"]


@pytest.mark.usefixtures("launched")
def test_group_advantages_need_no_critic(begin):
    row = begin(rl_every=1, ppo_preset="GRPO")
    play(turn(row).rollout)
    play(turn(row).baseline.rollout, solved=4)
    train(turn(row).sft_run)
    row = turn(row)
    assert row.phase == "rl" and "asks no critic" in row.phases["value"]["note"]


# -- people's verbs ------------------------------------------------------------------------------


def test_pause_stops_the_child_and_resume_lets_it_go_on(begin):
    row = turn(begin())
    iterations.pause(row)
    assert Rollout.objects.get(pk=row.rollout_id).state == "paused"
    assert not driver.advance(row.pk)
    with pytest.raises(WrongState, match="it can't be paused"):
        iterations.pause(row)
    iterations.resume(row)
    assert Rollout.objects.get(pk=row.rollout_id).state == "running"
    assert whole(row).state == State.DONE


def test_a_paused_run_goes_on_from_its_checkpoint_once_it_has_written_it(begin):
    row = begin()
    play(turn(row).rollout)
    play(turn(row).baseline.rollout, solved=4)
    row = turn(row)
    Run.objects.filter(pk=row.sft_run_id).update(state=Run.State.RUNNING)
    iterations.pause(row)
    assert Run.objects.get(pk=row.sft_run_id).state == "cancelling"
    iterations.resume(row)
    assert turn(row).resuming, "it waits for the checkpoint"
    Run.objects.filter(pk=row.sft_run_id).update(state=Run.State.CANCELLED)
    row = turn(row)
    assert row.sft_run.state == Run.State.QUEUED and not row.resuming
    train(row.sft_run)
    assert turn(row).phase == "evaluate"


def test_a_run_that_somebody_cancelled_stops_it_and_retry_goes_on(begin):
    row = begin()
    play(turn(row).rollout)
    play(turn(row).baseline.rollout, solved=4)
    run = turn(row).sft_run
    runs.cancel(run)
    row = turn(row)
    assert row.state == State.FAILED and "cancelled" in row.error
    row = iterations.retry(row)
    assert row.sft_run == run and Run.objects.get(pk=run.pk).state == Run.State.QUEUED
    assert row.error == "" and row.state == State.RUNNING
    assert row.phases["sft"]["state"] == "running" and "ended_at" not in row.phases["sft"]


def test_a_rollout_that_failed_is_played_anew(begin):
    row = turn(begin())
    rollouts.fail(row.rollout, error="the policy refuses")
    row = turn(row)
    assert row.state == State.FAILED and "the policy refuses" in row.error
    first = row.rollout
    iterations.retry(row)
    row = turn(row)
    assert row.rollout != first and row.rollout.name == "iteration-1-collect-2"
    assert row.phases["collect"]["tries"][0]["name"] == "iteration-1-collect"
    assert whole(row).state == State.DONE


def test_what_still_plays_is_ended_before_it_is_played_anew(begin, monkeypatch):
    row = begin()
    play(turn(row).rollout)
    row = turn(row)
    first = row.baseline
    Rollout.objects.filter(pk=first.rollout_id).update(state=Rollout.State.RUNNING)

    def gone(row, wanted):
        raise serving.ServerFailed("the policy server does not come up")

    with monkeypatch.context() as patch:
        patch.setattr(serving, "ready", gone)
        row = turn(row)
    assert row.state == State.FAILED and "does not come up" in row.error
    iterations.retry(row)
    row = turn(row)
    assert row.baseline != first
    assert Rollout.objects.get(pk=first.rollout_id).state == Rollout.State.CANCELLED


def test_a_baseline_of_which_nothing_could_be_judged_is_played_anew(begin):
    row = begin()
    play(turn(row).rollout)
    row = turn(row)
    first = row.baseline
    first.rollout.episodes.update(state="broken")
    Rollout.objects.filter(pk=first.rollout_id).update(state=Rollout.State.DONE)
    row = turn(row)
    assert row.state == State.FAILED and "every environment broke" in row.error
    iterations.retry(row)
    row = turn(row)
    assert row.state == State.RUNNING and row.baseline != first


def test_one_that_was_followed_is_not_tried_again(begin):
    row = turn(begin())
    rollouts.fail(row.rollout, error="no")
    row = turn(row)
    iterations.repeat(row)
    with pytest.raises(WrongState, match="followed by iteration-2: go on with that one"):
        iterations.retry(row)


def test_cancel_ends_the_child_too(begin):
    row = turn(begin(count=3))
    row = iterations.cancel(row)
    assert row.state == State.CANCELLED and row.remaining == 0
    assert Rollout.objects.get(pk=row.rollout_id).state == "cancelled"
    with pytest.raises(WrongState):
        iterations.cancel(row)


def test_repeating_a_live_one_adds_to_what_follows(begin):
    row = iterations.repeat(begin(), count=2)
    assert row.remaining == 2


def test_what_can_t_be_begun_names_the_field(begin, partner):
    with pytest.raises(BadConfig) as refused:
        begin(mix="nothing 1", seeds=0)
    assert set(refused.value.errors) == {"seeds"}
    with pytest.raises(BadConfig, match="no dataset called 'nothing'"):
        begin(mix="nothing 1")
    partner.version = "unknown"
    partner.save()
    with pytest.raises(BadConfig, match="deployment: partner serves unknown"):
        begin()
