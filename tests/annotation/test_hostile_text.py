"""What a computer, a model or a hand says that PostgreSQL would refuse: it stops no session."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent.policy import Candidate
from annotation import storable
from annotation.models import DecisionPoint, Session, Step
from annotation.session import proposals, steps, takeover
from sandbox.provider import ActionResult
from tests.annotation.test_steps import decide
from tests.annotation.test_takeover import write
from trajectory import Click, Sample, Type, action_from_dict

HALF_AN_EMOJI = 0x0100_D83D  # what noVNC makes of the key "😀"


def test_half_an_emoji_ends_no_takeover(session: Session, annotator: Any, hand: Any) -> None:
    takeover.take_over(session, fence=session.fence, by=annotator)
    write(session, hand(at=time.time()).click(5, 5).wait(1).tap(HALF_AN_EMOJI).type("a"))
    done = takeover.hand_back(session, fence=session.fence, by=annotator)
    assert [action_from_dict(step.action) for step in done] == [Click(5, 5), Type("a")]


def test_an_output_with_nul_is_kept_and_the_session_goes_on(
    session: Session, desktop: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ActionResult(output="one\0two\0\ud800")
    monkeypatch.setattr(desktop, "perform", lambda *_, **__: said)
    step = decide(session, action={"type": "shell", "command": "find -print0"})
    queue.run()
    step.refresh_from_db()
    assert (step.state, step.output) == (Step.State.EXECUTED, "one?two??")
    assert steps.current(session).status == DecisionPoint.Status.READY  # type: ignore[union-attr]


def test_a_candidate_that_can_not_be_kept_costs_only_itself(session: Session) -> None:
    point = steps.current(session)
    assert point is not None
    sample = Sample((1,), (2,), (float("nan"),), "v1")
    bad = Candidate(thought="a\0b", action=Type("\ud800"), raw="\0", version="v1", sample=sample)
    point.proposals.all().delete()
    proposals._row(point, 1, bad).save()
    row = point.proposals.get()
    assert (row.action, row.thought, row.raw, row.sample) == (None, "a?b", "?", None)
    assert "half of a character" in row.error


def test_text_is_kept_as_it_is_where_it_can_be() -> None:
    assert storable.text("Grüße, 日本 😀\n") == "Grüße, 日本 😀\n"
