"""Starting, staying, coming back, ending."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation import reaper
from annotation.errors import BadInput, NoTask, NotYours, StaleFence
from annotation.models import Decision, DecisionPoint, Session, Task
from annotation.session import preparing, sessions, steps
from annotation.tasks import tasks
from sandbox import setups
from sandbox.leasing import leases
from sandbox.models import Lease, Sandbox
from trajectory import Outcome


def expire(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    reaper.reap()
    session.refresh_from_db()


def test_start_claims_a_task_and_gets_to_the_first_proposals(session: Session, task: Task) -> None:
    task.refresh_from_db()
    assert (session.status, task.state) == (Session.Status.ACTIVE, Task.State.CLAIMED)
    assert session.lease is not None and session.lease.state == Lease.State.ACTIVE
    assert session.pseudonym and session.author.username not in session.pseudonym


def test_start_again_comes_back_to_the_live_session(session: Session, annotator: Any) -> None:
    assert sessions.start(user=annotator) == session


def test_without_a_free_desktop_the_session_waits_and_says_so(
    annotator: Any, task: Task, partner: Any, desktop: Any, queue: Any
) -> None:
    Sandbox.objects.update(state=Sandbox.State.RESETTING)
    session = sessions.start(user=annotator)
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.PREPARING
    assert "waiting for a free desktop" in session.stage
    Sandbox.objects.update(state=Sandbox.State.READY)
    reaper.reap()
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.ACTIVE


def test_a_dead_preparer_is_replaced(
    annotator: Any, task: Task, partner: Any, desktop: Any, queue: Any
) -> None:
    session = sessions.start(user=annotator)
    queue.clear()
    reaper.reap()
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.ACTIVE


def test_a_session_that_ends_while_it_waits_keeps_no_computer(
    annotator: Any, task: Task, partner: Any, desktop: Any, queue: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    session = sessions.start(user=annotator)
    acquire = leases.acquire

    def skipped_meanwhile(**wish: Any) -> Lease:
        lease = acquire(**wish)
        sessions.skip(session, fence=session.fence, by=annotator, reason="too slow")
        return lease

    monkeypatch.setattr(leases, "acquire", skipped_meanwhile)
    queue.run()
    session.refresh_from_db()
    assert (session.status, session.lease) == (Session.Status.EXPIRED, None)
    assert Lease.objects.get().state == Lease.State.RELEASED


def test_a_setup_that_breaks_is_tried_again_and_then_named(
    annotator: Any, task: Task, partner: Any, desktop: Any, queue: Any, make_computer: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def set_up(*_: Any, **__: Any) -> None:
        raise KeyError("path")

    monkeypatch.setattr(setups, "set_up", set_up)
    session = sessions.start(user=annotator)
    for _ in range(preparing.COMPUTERS):
        make_computer()
        reaper.reap()
        queue.run()
    session.refresh_from_db()
    assert (session.status, session.error) == ("failed", "preparing failed: KeyError('path')")
    assert not Lease.objects.filter(state=Lease.State.ACTIVE).exists()


def test_an_empty_queue_says_so(annotator: Any) -> None:
    with pytest.raises(NoTask):
        sessions.start(user=annotator)


def test_a_heartbeat_moves_the_end_away(session: Session) -> None:
    Session.objects.update(expires_at=timezone.now() + timedelta(seconds=1))
    before = timezone.now() + timedelta(seconds=60)
    assert sessions.heartbeat(session, fence=session.fence).expires_at > before


def test_a_silent_author_loses_the_desktop_but_nothing_else(
    session: Session, task: Task, queue: Any
) -> None:
    sessions.save_draft(session, fence=session.fence, draft={"thought": "half a"})
    fence = session.fence
    expire(session)
    assert session.status == Session.Status.EXPIRED
    assert session.draft == {"thought": "half a"}
    assert session.lease is not None and session.lease.state == Lease.State.RELEASED
    task.refresh_from_db()
    assert task.state == Task.State.OPEN
    with pytest.raises(StaleFence):
        sessions.save_draft(session, fence=fence, draft={"thought": "half a word"})
    session.refresh_from_db()
    assert session.draft == {"thought": "half a word"}


def test_a_reload_within_the_grace_time_finds_the_same_desktop(
    session: Session, annotator: Any
) -> None:
    again = sessions.resume(session, by=annotator)
    assert (again.lease, again.fence) == (session.lease, session.fence + 1)


@pytest.mark.parametrize("way", ["resume", "start"])
def test_an_expired_session_is_taken_up_on_another_desktop(
    session: Session, annotator: Any, queue: Any, make_computer: Any, way: str
) -> None:
    first = session.lease
    expire(session)
    queue.clear()
    make_computer()
    if way == "resume":
        sessions.resume(session, by=annotator)
    else:
        assert sessions.start(user=annotator) == session
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.ACTIVE
    assert session.lease != first
    assert steps.current(session).status == DecisionPoint.Status.READY  # type: ignore[union-attr]


def test_two_sessions_taken_up_at_once_are_refused_by_name(
    session: Session, annotator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expire(session)
    tasks.create(external_id="other", instruction="Do it.")
    other = Session.objects.create(
        task=Task.objects.get(external_id="other"), author=annotator, expires_at=timezone.now()
    )
    assert other.status in Session.LIVE
    monkeypatch.setattr(sessions, "live_of", lambda user: None)  # it was not there a moment ago
    with pytest.raises(NotYours, match="another session of yours is under way"):
        sessions.resume(session, by=annotator)
    session.refresh_from_db()
    assert session.status == Session.Status.EXPIRED


def test_an_expired_task_given_to_somebody_else_is_theirs(
    session: Session, annotator: Any, reviewer: Any
) -> None:
    expire(session)
    sessions.start(user=reviewer)
    with pytest.raises(NotYours, match="somebody else"):
        sessions.resume(session, by=annotator)


def test_finishing_verifies_submits_and_gives_the_desktop_back(
    session: Session, annotator: Any, queue: Any
) -> None:
    sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    session.refresh_from_db()
    assert session.stage == "verifying"
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.SUBMITTED
    assert session.verdict_detail
    assert session.lease is not None and session.lease.state == Lease.State.RELEASED
    last = session.steps.latest("index")
    assert (last.action["type"], last.state) == ("finish", "executed")


def test_a_kill_while_verifying_is_made_good(session: Session, annotator: Any, queue: Any) -> None:
    sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    queue.clear()
    reaper.reap()
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.SUBMITTED
    assert session.steps.count() == 1


def test_a_desktop_lost_while_verifying_gives_no_reward_and_keeps_the_work(
    session: Session, annotator: Any, queue: Any, desktop: Any
) -> None:
    Task.objects.update(verifier={"kind": "shell", "command": "true", "expect": ""})
    sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    Lease.objects.update(state=Lease.State.LOST)
    queue.run()
    session.refresh_from_db()
    assert (session.status, session.reward) == (Session.Status.SUBMITTED, None)
    assert "not verified" in session.verdict_detail


def test_a_verifier_that_breaks_keeps_nobody_waiting(
    session: Session, annotator: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(*_: Any, **__: Any) -> None:
        raise KeyError("sheet1")

    monkeypatch.setattr(setups, "verify", verify)
    Task.objects.update(verifier={"kind": "shell", "command": "true", "expect": ""})
    sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    queue.run()
    session.refresh_from_db()
    assert (session.status, session.reward) == (Session.Status.SUBMITTED, None)
    assert "the verifier failed: KeyError('sheet1')" in session.verdict_detail


def test_a_terminal_proposal_ends_the_session_by_the_same_way(
    session: Session, annotator: Any, queue: Any
) -> None:
    point = steps.current(session)
    assert point is not None
    steps.decide(
        session, fence=session.fence, decision_point=point, by=annotator, proposal_rank=None,
        thought="Nothing is there.", action={"type": "fail", "reason": "no such button"},
        seen=point.screenshot,
    )  # fmt: skip
    queue.run()
    session.refresh_from_db()
    assert (session.status, session.outcome) == (Session.Status.SUBMITTED, "failed")
    assert (session.report, session.reward) == ("no such button", None)
    assert session.steps.get().decision.kind == Decision.Kind.OVERRIDDEN


def test_infeasible_needs_a_reason(session: Session, annotator: Any) -> None:
    with pytest.raises(BadInput, match="report"):
        sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FAILED)


def test_a_skipped_task_is_not_offered_again(
    session: Session, annotator: Any, reviewer: Any
) -> None:
    sessions.skip(session, fence=session.fence, by=annotator, reason="not for me")
    with pytest.raises(NoTask):
        sessions.start(user=annotator)
    assert sessions.start(user=reviewer).task == session.task


def test_a_broken_task_leaves_the_queue(session: Session, annotator: Any, reviewer: Any) -> None:
    sessions.report_broken(session, fence=session.fence, by=annotator, report="the page is empty")
    session.refresh_from_db()
    assert (session.status, session.outcome) == (Session.Status.FAILED, Outcome.ENV_FAILURE)
    with pytest.raises(NoTask):
        sessions.start(user=reviewer)


def test_a_task_that_wants_two_sessions_is_given_to_two_people(
    annotator: Any, reviewer: Any, partner: Any
) -> None:
    task = tasks.create(external_id="twice", instruction="Do it.", needed=2)
    sessions.start(user=annotator)
    task.refresh_from_db()
    assert task.state == Task.State.OPEN
    sessions.start(user=reviewer)
    task.refresh_from_db()
    assert task.state == Task.State.CLAIMED


def test_what_nobody_waits_for_is_asked_again(session: Session, queue: Any) -> None:
    session.decision_points.update(status=DecisionPoint.Status.STALE)
    reaper.reap()
    queue.run()
    assert steps.current(session).status == DecisionPoint.Status.READY  # type: ignore[union-attr]


def test_a_lease_that_ended_under_the_session_is_noticed(
    session: Session, queue: Any, make_computer: Any
) -> None:
    make_computer()
    Lease.objects.update(state=Lease.State.EXPIRED)
    reaper.reap()
    session.refresh_from_db()
    assert session.status == Session.Status.PREPARING
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.ACTIVE
