"""Judging sessions, and what they teach afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from annotation import access
from annotation.data import reviews
from annotation.data.reviews import Mark
from annotation.errors import BadInput, NotYours, Refused
from annotation.models import Review, Session, Task
from annotation.session import sessions, steps
from trajectory import Actor, Outcome, Type


def test_accepting_closes_the_task(submitted: Session, reviewer: Any) -> None:
    review = reviews.submit(submitted, reviewer=reviewer, verdict="accepted")
    submitted.refresh_from_db()
    assert (review.verdict, submitted.status) == ("accepted", Session.Status.ACCEPTED)
    assert Task.objects.get().state == Task.State.DONE


def test_nobody_reviews_their_own(submitted: Session, annotator: Any) -> None:
    with pytest.raises(NotYours):
        reviews.submit(submitted, reviewer=annotator, verdict="accepted")
    assert not Review.objects.exists()


def test_a_session_is_judged_once(submitted: Session, reviewer: Any, admin_user: Any) -> None:
    reviews.submit(submitted, reviewer=reviewer, verdict="accepted")
    with pytest.raises(Refused):
        reviews.submit(submitted, reviewer=admin_user, verdict="rejected", reasons="no")


def test_returning_needs_reasons_and_goes_back_to_the_author(
    submitted: Session, reviewer: Any, annotator: Any
) -> None:
    with pytest.raises(BadInput, match="reasons"):
        reviews.submit(submitted, reviewer=reviewer, verdict="returned")
    reviews.submit(submitted, reviewer=reviewer, verdict="returned", reasons="say why you press")
    (back,) = access.returned_for(annotator)
    step = back.steps.first()
    assert step is not None
    with pytest.raises(NotYours):
        steps.set_thought(step, by=reviewer, thought="x")
    steps.set_thought(step, by=annotator, thought="It submits the form.")
    sessions.resubmit(back, by=annotator)
    assert list(access.review_queue(reviewer)) == [submitted]


def test_rejecting_opens_the_task_again_for_others(
    submitted: Session, reviewer: Any, annotator: Any
) -> None:
    reviews.submit(submitted, reviewer=reviewer, verdict="rejected", reasons="wrong button")
    assert Task.objects.get().state == Task.State.OPEN
    assert sessions.start(user=reviewer).task == submitted.task


def test_corrections_take_the_place_of_what_was_recorded(submitted: Session, reviewer: Any) -> None:
    review = reviews.submit(
        submitted,
        reviewer=reviewer,
        verdict="accepted",
        marks=[
            Mark(0, "wrong", thought="I type.", action={"type": "type", "text": "x"}),
            Mark(1, "redundant"),
            Mark(2, "right", thought="It is done."),
        ],
    )
    assert review.verdict == Review.Verdict.CORRECTED
    first, second, last = reviews.trajectory_of(submitted).steps
    assert (first.action, first.thought, first.actor) == (Type("x"), "I type.", Actor.HUMAN)
    assert [s.trainable for s in (first, second, last)] == [True, False, True]
    assert last.thought == "It is done."


def test_a_wrong_step_without_correction_gets_no_loss(submitted: Session, reviewer: Any) -> None:
    reviews.submit(submitted, reviewer=reviewer, verdict="accepted", marks=[Mark(0, "wrong")])
    assert [s.trainable for s in reviews.trajectory_of(submitted).steps] == [False, True, True]


def test_a_mark_that_makes_no_sense_is_named(submitted: Session, reviewer: Any) -> None:
    for mark, said in [
        (Mark(9, "right"), "no step 9"),
        (Mark(0, "nice"), "step 0 must be"),
        (Mark(0, "wrong", action={"type": "click"}), "step 0: click"),
    ]:
        with pytest.raises(BadInput, match=said):
            reviews.submit(submitted, reviewer=reviewer, verdict="accepted", marks=[mark])
    assert not Review.objects.exists()


def test_a_trajectory_names_nobody(submitted: Session) -> None:
    trajectory = reviews.trajectory_of(submitted)
    assert trajectory.annotator == submitted.pseudonym
    assert submitted.author is not None
    assert submitted.author.username not in repr(trajectory).replace("annotator=", "")
    assert trajectory.outcome == Outcome.FINISHED
    assert trajectory.task == "ok"


def test_a_session_without_steps_teaches_nothing(session: Session) -> None:
    with pytest.raises(reviews.NoTrajectory):
        reviews.trajectory_of(session)
