"""Which episodes a judge may learn from."""

from __future__ import annotations

import json

import pytest

from tests.training.judged import make_episodes, make_rollout
from training.errors import Refused
from training.models import Checkpoint, Rollout, Run
from training.rewards import rows

pytestmark = pytest.mark.django_db


def run_over(rollout: Rollout) -> Run:
    base = Checkpoint.objects.create(version="b", uri="file:///b", sha256="0" * 64)
    return Run.objects.create(name="judge", kind=Run.Kind.ORM, base=base, rollout=rollout)


def test_verified_episodes_become_questions_with_their_truth():
    rollout = make_rollout()
    make_episodes(3, 2, rollout=rollout)
    good, lost = rows.lines(run_over(rollout), kind="elements")
    found = [json.loads(line) for line in good]
    assert sorted(row["truth"] for row in found) == [0, 0, 1, 1, 1]
    assert len(found) == 5 and lost == []
    assert all(row["group"].count("#") == 1 for row in found)


def test_what_a_judge_is_tested_on_it_must_not_learn():
    rollout = make_rollout()
    make_episodes(2, 2, rollout=rollout)
    Rollout.objects.update(purpose=Rollout.Purpose.EVALUATE)
    rollout.refresh_from_db()
    with pytest.raises(Refused, match="evaluates"):
        rows.lines(run_over(rollout), kind="elements")


def test_episodes_without_screenshots_are_named_for_a_judge_that_sees():
    rollout = make_rollout()
    make_episodes(1, 1, rollout=rollout)
    good, lost = rows.lines(run_over(rollout), kind="screenshot")
    assert len(good) + len(lost) == 2
    assert all("screenshot" in reason for _, reason in lost)
