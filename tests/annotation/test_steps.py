"""Deciding: what is written down, what is done, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from annotation import access, reaper
from annotation.errors import AlreadyDecided, BadInput, Busy, StaleFence, StaleScreen
from annotation.models import Decision, DecisionPoint, Session, Step
from annotation.session import desktops, pictures, sessions, steps
from annotation.tasks import tasks
from blobs.store import StoreUnreachable
from sandbox.models import Lease
from sandbox.provider import SandboxError
from trajectory import Click, Type

OK = {"type": "click", "x": 130, "y": 115}


def decide(session: Session, **changes: Any) -> Step:
    point = steps.current(session)
    assert point is not None
    values: dict[str, Any] = {
        "fence": session.fence,
        "decision_point": point,
        "by": session.author,
        "proposal_rank": 1,
        "thought": "I press ok.",
        "action": OK,
        "seen": point.screenshot,
        "active_ms": 1200,
    }
    return steps.decide(session, **{**values, **changes})


def test_proposals_are_ready_with_their_picture(session: Session, annotator: Any) -> None:
    point = steps.current(session)
    assert point is not None
    assert (point.status, point.index) == (DecisionPoint.Status.READY, 0)
    assert [p.rank for p in point.proposals.all()] == [1, 2]
    assert access.blob_for(annotator, point.screenshot) == point.screenshot
    assert point.observation and point.observation["elements"]


def test_accepting_does_it_once_and_asks_again(session: Session, desktop: Any, queue: Any) -> None:
    step = decide(session)
    assert step.state == Step.State.CHOSEN
    queue.run()
    step.refresh_from_db()
    assert step.state == Step.State.EXECUTED
    assert desktop.actions == [Click(130, 115)]
    assert step.decision.kind == Decision.Kind.ACCEPTED
    assert (step.actor, step.model_version) == (
        "agent",
        step.decision.proposal.model_version,
    )
    point = steps.current(session)
    assert point is not None
    assert (point.index, point.status) == (1, DecisionPoint.Status.READY)
    session.refresh_from_db()
    assert session.active_ms == 1200


@pytest.mark.parametrize(
    ("changes", "kind", "actor"),
    [
        ({}, "accepted", "agent"),
        ({"thought": " I press ok.\n"}, "accepted", "agent"),
        ({"thought": "Because."}, "edited_thought", "agent"),
        ({"action": {"type": "type", "text": "x"}}, "edited_action", "human"),
        (
            {"thought": "No.", "action": {"type": "type", "text": "x"}},
            "edited",
            "human",
        ),
        ({"proposal_rank": None, "thought": "Mine."}, "overridden", "human"),
    ],
)
def test_what_a_person_did_with_the_proposal_is_kept(
    session: Session, changes: dict[str, Any], kind: str, actor: str
) -> None:
    step = decide(session, **changes)
    assert (step.decision.kind, step.actor) == (kind, actor)
    assert (step.decision.proposal is None) == (kind == "overridden")


def test_a_changed_target_is_refused_and_a_new_round_begins(
    session: Session, desktop: Any, queue: Any
) -> None:
    before = steps.current(session)
    desktop.boxes = [(90, 80, 220, 180)]
    with pytest.raises(StaleScreen, match=r"\(130, 115\)"):
        decide(session)
    queue.run()
    point = steps.current(session)
    assert desktop.actions == []
    assert point is not None and before is not None and point.pk != before.pk
    assert point.status == DecisionPoint.Status.READY
    session.refresh_from_db()
    assert session.draft == {"thought": "I press ok.", "action": OK}


def test_a_change_elsewhere_or_of_a_caret_is_let_through(session: Session, desktop: Any) -> None:
    desktop.boxes += [(300, 0, 390, 40), (140, 90, 141, 99)]
    assert decide(session).state == Step.State.CHOSEN


def test_typing_has_no_place_to_go_stale(session: Session, desktop: Any, queue: Any) -> None:
    desktop.boxes = []
    decide(session, action={"type": "type", "text": "hi"})
    queue.run()
    assert desktop.actions == [Type("hi")]


def test_an_older_fence_is_refused_and_its_text_kept(session: Session, annotator: Any) -> None:
    old = session.fence
    sessions.resume(session, by=annotator)
    with pytest.raises(StaleFence):
        decide(session, fence=old, thought="typed for long")
    session.refresh_from_db()
    assert session.draft["thought"] == "typed for long"
    assert not session.steps.exists()


def test_the_same_point_is_decided_once(session: Session, queue: Any) -> None:
    point = steps.current(session)
    decide(session)
    with pytest.raises(Busy):
        decide(session, decision_point=point)
    queue.run()
    with pytest.raises(AlreadyDecided):
        decide(session, decision_point=point)
    assert session.steps.count() == 1


def test_an_action_that_cannot_be_read_is_named(session: Session) -> None:
    with pytest.raises(BadInput, match=r"click\.x is missing"):
        decide(session, action={"type": "click"})
    with pytest.raises(BadInput, match="no number 7"):
        decide(session, proposal_rank=7)


def test_a_refused_action_is_on_the_step_and_the_session_goes_on(
    session: Session, desktop: Any, queue: Any
) -> None:
    desktop.refuse = "(9999, 1) lies outside the screen"
    step = decide(session)
    queue.run()
    step.refresh_from_db()
    assert (step.state, step.error) == (Step.State.FAILED, desktop.refuse)
    point = steps.current(session)
    assert point is not None and point.status == DecisionPoint.Status.READY


def test_a_decision_survives_the_death_of_the_process(
    session: Session, desktop: Any, queue: Any
) -> None:
    step = decide(session)
    queue.clear()  # the process died right after its commit
    Step.objects.update(created_at=step.created_at - reaper.STEP_SILENT * 2)
    reaper.reap()
    reaper.reap()
    queue.run()
    assert desktop.actions == [Click(130, 115)]
    step.refresh_from_db()
    assert step.state == Step.State.EXECUTED
    assert steps.current(session).status == DecisionPoint.Status.READY  # type: ignore[union-attr]


def test_a_death_after_the_click_does_not_click_twice(
    session: Session, desktop: Any, queue: Any
) -> None:
    step = decide(session)
    desktop.perform(Click(130, 115), epoch=1, action_id=step.action_id)
    queue.clear()  # the process died before it could write that down
    steps.execute(step.pk)
    assert desktop.actions == [Click(130, 115)]


def test_a_lost_desktop_is_replaced_and_everything_done_again(
    session: Session, desktop: Any, queue: Any, make_computer: Any
) -> None:
    decide(session)
    queue.run()
    make_computer()
    desktop.lost = True
    step = decide(session, action={"type": "type", "text": "hi"})
    verb, pk = queue.pop(0)
    verb(pk)
    session.refresh_from_db()
    assert session.status == Session.Status.PREPARING
    assert "lost" in session.stage
    first_lease = session.lease
    desktop.lost = False
    desktop.done.clear()
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.ACTIVE
    assert session.lease != first_lease
    assert desktop.actions == [
        Click(130, 115),
        Type("hi"),
    ]  # replayed, then the one under way
    step.refresh_from_db()
    assert step.state == Step.State.EXECUTED


def test_a_replay_that_finds_another_screen_stops(
    session: Session, desktop: Any, queue: Any, make_computer: Any
) -> None:
    decide(session)
    queue.run()
    make_computer()
    desktop.lost = True
    decide(session, action={"type": "type", "text": "hi"})
    queue.pop(0)[0](Step.objects.latest("pk").pk)
    desktop.lost, desktop.boxes = False, []
    queue.run()
    session.refresh_from_db()
    assert session.status == Session.Status.FAILED
    assert "step 1" in session.error
    assert session.steps.count() == 2
    session.task.refresh_from_db()
    assert session.task.state == "open"


def test_a_failed_policy_is_named_and_asked_again(
    session: Session, partner: Any, queue: Any
) -> None:
    partner.script = [[]]
    partner.save()
    point = steps.request_proposals(session, fence=session.fence, hint="the left one")
    queue.run()
    point.refresh_from_db()
    assert (point.status, point.hint) == (DecisionPoint.Status.FAILED, "the left one")
    assert point.error
    step = decide(session, proposal_rank=None, thought="I do it.")
    assert step.decision.kind == Decision.Kind.OVERRIDDEN


def test_a_failed_point_is_retried_by_the_reaper(
    session: Session, partner: Any, queue: Any
) -> None:
    script, partner.script = partner.script, [[]]
    partner.save()
    point = steps.request_proposals(session, fence=session.fence)
    queue.run()
    partner.script = script
    partner.save()
    DecisionPoint.objects.update(ready_at=point.requested_at - reaper.RETRY_AFTER * 2)
    reaper.reap()
    queue.run()
    point.refresh_from_db()
    assert (point.status, point.attempts) == (DecisionPoint.Status.READY, 2)


def test_a_guest_that_fails_at_an_action_does_not_leave_the_session_executing(
    session: Session, desktop: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def perform(*_: Any, **__: Any) -> None:
        raise SandboxError("the guest failed: KeyError")

    monkeypatch.setattr(desktop, "perform", perform)
    step = decide(session)
    queue.run()
    step.refresh_from_db()
    assert (step.state, step.error) == (Step.State.FAILED, "the guest failed: KeyError")
    assert steps.current(session).status == DecisionPoint.Status.READY  # type: ignore[union-attr]


def test_a_screen_or_a_picture_that_can_not_be_had_is_said(
    session: Session, desktop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(error: Exception) -> Any:
        def refused(*_: Any, **__: Any) -> None:
            raise error

        return refused

    with monkeypatch.context() as patch:
        patch.setattr(desktop, "observe", refuse(SandboxError("the guest failed")))
        with pytest.raises(Busy, match="could not be looked at, nothing was sent"):
            decide(session)
    monkeypatch.setattr(pictures, "read", refuse(StoreUnreachable("no S3")))
    with pytest.raises(Busy, match="can't be read, nothing was sent: no S3"):
        decide(session)
    assert not session.steps.exists()


def test_a_connection_of_a_session_that_ended_elsewhere_is_closed(
    session: Session, desktop: Any, make_computer: Any, reviewer: Any, queue: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    closed: list[bool] = []
    monkeypatch.setattr(desktop, "close", lambda: closed.append(True))
    Lease.objects.update(state=Lease.State.RELEASED)  # by another process
    make_computer()
    tasks.create(external_id="another", instruction="Do it.")
    sessions.start(user=reviewer)
    queue.run()
    assert closed == [True]
    assert list(desktops._connected) == [Lease.objects.latest("pk").pk]
