"""What a hand does between take over and hand back is data."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation import reaper
from annotation.data import values
from annotation.errors import Busy, MissingThoughts
from annotation.models import DecisionPoint, Session
from annotation.session import sessions, steps, takeover
from sandbox.models import InputEvent, Lease
from trajectory import Click, Hotkey, Outcome, Scroll, Shell, Type, action_from_dict


def write(session: Session, hand: Any) -> None:
    """Write a scripted hand's input as the relay does."""
    InputEvent.objects.bulk_create(
        InputEvent(
            lease=session.lease,
            seq=event.seq,
            at=event.at,
            kind="command" if event.command else "pointer" if event.keysym is None else "key",
            x=event.x,
            y=event.y,
            buttons=event.buttons,
            keysym=event.keysym,
            down=event.down,
            text=event.command,
            frame=event.observation["screenshot"],
            observation={**event.observation, "captured_at": event.at},
        )
        for event in hand.events
    )


def work(hand: Any, **start: Any) -> Any:
    script = hand(at=time.time(), **start)
    script.click(200, 120).wait(1).type("Hello").tap(hand.ENTER)
    return script.wait(1).move(50, 60).notch(4).notch(4)


DONE = [Click(200, 120), Type("Hello"), Hotkey(("enter",)), Scroll(50, 60, 0, 2)]


def test_a_takeover_becomes_ordinary_steps(
    session: Session, annotator: Any, hand: Any, queue: Any
) -> None:
    row = takeover.take_over(session, fence=session.fence, by=annotator)
    assert row.controller == Session.Controller.HUMAN
    assert Lease.objects.get().human_control
    assert steps.current(session).status == DecisionPoint.Status.STALE  # type: ignore[union-attr]
    write(session, work(hand))
    done = takeover.hand_back(session, fence=session.fence, by=annotator)
    assert [action_from_dict(step.action) for step in done] == DONE
    assert all(step.observation["screenshot"] == step.screenshot for step in done)
    assert all((s.actor, s.state, s.trainable) == ("human", "executed", True) for s in done)
    assert {step.decision.kind for step in done} == {"taken_over"}
    assert not Lease.objects.get().human_control
    queue.run()
    point = steps.current(session)
    assert point is not None
    assert (point.index, point.status) == (4, DecisionPoint.Status.READY)


def test_command_lines_of_the_terminal_become_steps_of_the_hand(
    session: Session, annotator: Any, hand: Any
) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    script = hand(at=time.time()).click(200, 120).wait(1).type("half")
    write(session, script.wait(0.5).command("mkdir -p reports").wait(1).command("ls").click(9, 9))
    done = takeover.hand_back(session, fence=session.fence, by=annotator)
    shell = [Shell("mkdir -p reports"), Shell("ls")]
    assert [action_from_dict(step.action) for step in done] == [
        Click(200, 120), Type("half"), *shell, Click(9, 9)
    ]  # fmt: skip
    assert all((step.actor, step.trainable) == ("human", True) for step in done)
    assert {step.decision.kind for step in done} == {"taken_over"}
    for step in steps.missing_thoughts(session):
        steps.set_thought(step, by=annotator, thought="The folder is missing.")
    history = values.history(Session.objects.get(pk=session.pk))
    assert [step.action for step in history if step.actor == "human"][2:4] == shell


def test_what_the_hand_did_needs_thoughts_before_the_end(
    session: Session, annotator: Any, hand: Any
) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    write(session, work(hand))
    with pytest.raises(MissingThoughts) as missing:
        sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    assert missing.value.steps == [0, 1, 2, 3]
    for step in steps.missing_thoughts(session):
        steps.set_thought(step, by=annotator, thought="I do it by hand.")
    sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    assert session.steps.count() == 5


def test_an_author_who_goes_away_in_control_loses_nothing(
    session: Session, annotator: Any, hand: Any
) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    write(session, work(hand))
    Session.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    reaper.reap()
    session.refresh_from_db()
    assert (session.status, session.controller) == ("expired", "agent")
    assert [action_from_dict(step.action) for step in session.steps.all()] == DONE


def test_a_desktop_lost_in_a_takeover_keeps_what_the_hand_did(
    session: Session, annotator: Any, hand: Any, queue: Any, make_computer: Any, desktop: Any
) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    script = hand(at=time.time()).type("hi")
    write(session, script)
    make_computer()
    Lease.objects.update(state=Lease.State.LOST)
    reaper.reap()
    queue.run()
    session.refresh_from_db()
    assert (session.status, session.controller) == ("active", "agent")
    assert [action_from_dict(step.action) for step in session.steps.all()] == [Type("hi")]
    assert desktop.actions == [Type("hi")]  # done again on the new one


def test_input_is_reduced_once(session: Session, annotator: Any, hand: Any) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    write(session, work(hand))
    takeover.hand_back(session, fence=session.fence, by=annotator)
    with pytest.raises(Busy):
        takeover.hand_back(session, fence=session.fence, by=annotator)
    takeover.take_over(session, fence=session.fence, by=annotator)
    write(session, hand(at=time.time(), seq=1000).click(5, 5))
    (step,) = takeover.hand_back(session, fence=session.fence, by=annotator)
    assert action_from_dict(step.action) == Click(5, 5)
    assert session.steps.count() == 5


def test_a_picture_from_before_the_last_action_gets_no_loss(
    session: Session, annotator: Any, hand: Any
) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    write(session, hand(at=time.time()).click(5, 5).wait(1).click(9, 9))
    second = InputEvent.objects.filter(x=9, buttons=1).get()
    stale = {**second.observation, "captured_at": second.at - 10}
    InputEvent.objects.filter(pk=second.pk).update(observation=stale, frame="")
    first_step, second_step = takeover.hand_back(session, fence=session.fence, by=annotator)
    assert first_step.trainable
    assert not second_step.trainable
    assert "older than the action before" in second_step.error


def test_a_computer_that_is_gone_can_not_be_taken_over(session: Session, annotator: Any) -> None:
    Lease.objects.update(state=Lease.State.LOST)
    with pytest.raises(Busy, match="the computer is gone"):
        takeover.take_over(session, fence=session.fence, by=annotator)
    session.refresh_from_db()
    assert session.controller == Session.Controller.AGENT


def test_the_agent_decides_nothing_while_the_hand_is_in_control(
    session: Session, annotator: Any
) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    with pytest.raises(Busy):
        steps.request_proposals(session, fence=session.fence)


def test_no_takeover_while_a_step_is_being_done(session: Session, annotator: Any) -> None:
    point = steps.current(session)
    assert point is not None
    steps.decide(
        session, fence=session.fence, decision_point=point, by=annotator, proposal_rank=1,
        thought="I press ok.", action={"type": "click", "x": 130, "y": 115}, seen=point.screenshot,
    )  # fmt: skip
    with pytest.raises(Busy):
        takeover.take_over(session, fence=session.fence, by=annotator)
