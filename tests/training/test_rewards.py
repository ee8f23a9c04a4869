"""Reward models as rows: made, calibrated on what a verifier knows, admitted only then."""

from __future__ import annotations

import pytest

from agent.models import Deployment
from agent.policies import endpoint
from tests.agent.judge import Judge, says, text_of
from tests.training.judged import WON, make_episodes, make_rollout
from training import jobs
from training.errors import BadConfig, NameTaken, WrongState
from training.models import Calibration, Episode, RewardModel
from training.rewards import calibrations, labelled, reward_models
from training.rewards.measures import measure

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge():
    """A model that knows: it says success where the page says that the order was placed."""
    judge = Judge(lambda token, body: says(word(body))(token, body))
    yield judge
    judge.close()


def word(body):
    return "success" if WON in text_of(body) else "failure"


@pytest.fixture
def deployment(judge):
    return Deployment.objects.create(
        name="judge", kind="openai", base_url=judge.url, model="j", reads="elements", version="1"
    )


@pytest.fixture
def model(deployment):
    return reward_models.create(name="orm", kind="generative", deployment=deployment)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """The jobs that were queued; a test runs them itself."""
    asked = []
    monkeypatch.setattr(jobs.calibrate, "apply_async", lambda args, **_: asked.append(args[0]))
    return asked


@pytest.fixture
def calibrate(model, django_capture_on_commit_callbacks):
    def calibrate(size=12, row=None) -> Calibration:
        with django_capture_on_commit_callbacks(execute=True):
            calibration = calibrations.start(row or model, size=size)
        jobs.calibrate(calibration.pk)
        calibration.refresh_from_db()
        return calibration

    return calibrate


# -- making one ----------------------------------------------------------------------------------


def test_what_makes_no_reward_model_is_named_by_field(deployment, model):
    scripted = Deployment.objects.create(name="s", kind="scripted")
    for values, field in [
        ({"kind": "magic"}, "kind"),
        ({"kind": "generative"}, "deployment"),
        ({"kind": "generative", "deployment": scripted}, "deployment"),
        ({"kind": "ensemble", "members": [model]}, "members"),
        ({"kind": "ensemble", "deployment": deployment, "members": [model, model]}, "deployment"),
        ({"kind": "reference", "members": [model]}, "members"),
    ]:
        with pytest.raises(BadConfig) as refused:
            reward_models.create(name="x", **values)
        assert field in refused.value.errors
    with pytest.raises(NameTaken):
        reward_models.create(name="orm", kind="reference")
    assert RewardModel.objects.count() == 1


def test_each_kind_is_built_from_its_row(model):
    rules = reward_models.create(name="rules", kind="reference")
    pair = reward_models.create(name="pair", kind="ensemble", members=[model, rules])
    with pytest.raises(BadConfig):
        reward_models.create(name="nested", kind="ensemble", members=[pair, model])
    names = [type(reward_models.build(row)).__name__ for row in (model, rules, pair)]
    assert names == ["GenerativeModel", "ReferenceModel", "EnsembleModel"]
    assert reward_models.build(model).observation_kind == "elements"


# -- the labelled set ----------------------------------------------------------------------------


def test_a_labelled_set_is_balanced_spread_and_always_the_same():
    rollout = make_rollout()
    make_episodes(20, 20, task="n1", rollout=rollout)
    make_episodes(3, 3, task="n2", rollout=rollout)
    first = labelled.draw(size=12)
    assert [sum(label.truth for label in first), len(first)] == [6, 12]
    tasks = Episode.objects.in_bulk([label.episode for label in first])
    assert sum(tasks[label.episode].task == "n2" for label in first) == 6
    assert labelled.draw(size=12) == first != labelled.draw(size=12, seed=1)
    assert labelled.sha256_of(first) != labelled.sha256_of(first[:-1])


def test_what_no_verifier_judged_is_in_no_labelled_set():
    rollout = make_rollout()
    make_episodes(2, 2, rollout=rollout)
    bad = make_episodes(4, 0, task="n5", rollout=rollout)
    for row, values in zip(
        bad, [{"reward": None}, {"state": "broken"}, {"trajectory": ""}, {"outcome": "env_failure"}],
        strict=True,
    ):  # fmt: skip
        Episode.objects.filter(pk=row.pk).update(**values)
    assert {label.episode for label in labelled.draw(size=4)}.isdisjoint({row.pk for row in bad})
    with pytest.raises(labelled.TooFew, match="3 successes are wanted and there are 2"):
        labelled.draw(size=6)
    with pytest.raises(labelled.TooFew):
        labelled.draw(size=2, families=["games"])


# -- calibrating ---------------------------------------------------------------------------------


def test_a_calibration_compares_the_model_with_the_verifier(calibrate, judge, queued):
    make_episodes()
    row = calibrate()
    assert queued == [row.pk]
    assert (row.state, row.error, row.version) == ("done", "", "judge-1")
    assert (row.true_positive, row.true_negative, row.false_positive) == (6, 6, 0)
    assert row.answers[0]["evidence"] == [[1, "a button."]]
    assert len(judge.bodies) == 12
    # Nothing tells the model what the verifier said.
    assert not any("reward" in str(body).lower() for body in judge.bodies)
    jobs.calibrate(row.pk)
    assert len(judge.bodies) == 12


def test_what_cannot_be_read_is_counted_apart(calibrate, judge):
    make_episodes()
    judge.answer = lambda token, body: (
        "Yes." if WON in text_of(body) else says("unsure")(token, body)
    )
    row = calibrate()
    assert (row.unreadable, row.abstained, row.true_positive) == (6, 6, 0)
    found = measure(row.answers)
    assert (found.precision, found.accuracy) == (None, None)
    assert (found.recall.value, found.coverage.value) == (0, 0)


def test_a_model_that_is_away_fails_the_calibration_which_then_goes_on(
    calibrate, judge, monkeypatch, django_capture_on_commit_callbacks, queued
):
    monkeypatch.setattr(endpoint, "BACKOFF_S", 0.001)
    monkeypatch.setattr(calibrations, "KEEP_S", 0.0)
    make_episodes()
    good, judge.answer = judge.answer, lambda token, body: (
        (500, {"error": {"message": "out of memory"}})
        if len(judge.bodies) > 5
        else says("success")(token, body)
    )  # fmt: skip
    row = calibrate()
    assert row.state == "failed"
    assert "out of memory" in row.error
    assert sum("reward" in answer for answer in row.answers) == 5
    judge.answer = good
    with django_capture_on_commit_callbacks(execute=True):
        calibrations.resume(row)
    assert len(queued) == 2
    jobs.calibrate(row.pk)
    row.refresh_from_db()
    assert (row.state, len(judge.bodies)) == ("done", 13)
    with pytest.raises(WrongState):
        calibrations.resume(row)


def test_a_lost_job_is_queued_again_and_an_old_one_writes_nothing(
    model, queued, monkeypatch, django_capture_on_commit_callbacks
):
    make_episodes()
    row = calibrations.start(model, size=4)
    with django_capture_on_commit_callbacks(execute=True):
        assert calibrations.find_lost() == 1
    assert queued == [row.pk]

    def stolen(episode):
        Calibration.objects.update(claim=99)
        return ()

    monkeypatch.setattr(calibrations, "references_of", stolen)
    jobs.calibrate(row.pk)
    row.refresh_from_db()
    assert (row.state, row.true_positive) == ("running", 0)
    calibrations.cancel(row)
    assert row.state == "cancelled"
    with pytest.raises(WrongState):
        calibrations.cancel(row)


def test_references_come_from_where_the_task_says():
    (row, *_) = make_episodes(1, 0)
    assert calibrations.references_of(row) == ()  # no such family here
    assert calibrations.trajectory_of(row).reward is None


# -- measures ------------------------------------------------------------------------------------


def answers(tp=0, fp=0, tn=0, fn=0, abstained=0, unreadable=0):
    return [
        *[{"truth": 1, "reward": 1}] * tp, *[{"truth": 0, "reward": 1}] * fp,
        *[{"truth": 0, "reward": 0}] * tn, *[{"truth": 1, "reward": 0}] * fn,
        *[{"truth": 1, "reward": None}] * abstained,
        *[{"truth": 1, "reward": None, "error": "?"}] * unreadable, {"truth": 1},
    ]  # fmt: skip


def test_measures_are_those_of_the_textbook():
    found = measure(answers(tp=30, fp=10, tn=40, fn=20))
    assert found.precision.value == 0.75
    assert found.recall.value == 0.6
    assert found.specificity.value == 0.8
    assert found.accuracy.value == 0.7
    assert found.f1.value == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert found.f1.low < found.f1.value < found.f1.high
    assert found.precision.low == pytest.approx(0.598, abs=1e-3)
    assert found.counts["open"] == 0


def test_an_abstention_costs_recall_and_coverage_only():
    found = measure(answers(tp=5, tn=10, abstained=3, unreadable=2))
    assert (found.precision.value, found.accuracy.value) == (1, 1)
    assert (found.recall.value, found.coverage.value) == (0.5, 0.75)
    assert measure([]).f1 is None


# -- the gate ------------------------------------------------------------------------------------


def test_nothing_gates_without_a_good_calibration(calibrate, model, judge):
    make_episodes(40, 40)
    with pytest.raises(reward_models.NotAdmitted, match="no finished calibration"):
        reward_models.admit(model)
    calibrate(size=8)
    with pytest.raises(reward_models.NotAdmitted, match=r"interval 0\.510 to 1\.000"):
        reward_models.admit(model)
    good = calibrate(size=80)
    admitted = reward_models.admit(model)
    assert (admitted.gates, admitted.gated_by) == (True, good)
    with pytest.raises(reward_models.NotAdmitted, match=r"must reach 0\.95"):
        reward_models.admit(model, precision=0.95)
    with pytest.raises(BadConfig):
        reward_models.admit(model, precision=0)
    judge.answer = says("success")
    bad = calibrate(size=80)
    assert (bad.true_positive, bad.false_positive) == (40, 40)
    with pytest.raises(reward_models.NotAdmitted, match=r"precision of 0\.500"):
        reward_models.admit(model)


def test_another_version_of_the_model_gates_no_longer(calibrate, model, deployment):
    make_episodes(20, 20)
    calibrate(size=40)
    row = reward_models.admit(model, precision=0.8)
    assert reward_models.in_force(row)
    Deployment.objects.filter(pk=deployment.pk).update(version="2")
    row = RewardModel.objects.get()
    assert not reward_models.in_force(row)
    with pytest.raises(reward_models.NotAdmitted, match="has changed since"):
        reward_models.admit(row)
    assert not reward_models.withdraw(row).gates
