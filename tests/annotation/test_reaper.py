"""What dead processes left is put right, row by row, and nothing is done twice for impatience."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation import reaper
from annotation.models import DecisionPoint, Session, Step
from annotation.session import proposals, sessions, steps
from tests.annotation.test_steps import decide


def test_a_session_that_can_not_be_put_right_holds_up_no_other(
    session: Session, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Session.objects.create(
        task=session.task, author=reviewer, expires_at=timezone.now(), stage="waiting"
    )
    Session.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    real, broken = sessions.expire, [session]

    def expire(row: Session) -> Session:
        if row in broken:
            raise ValueError("this row is broken")
        return real(row)

    monkeypatch.setattr(sessions, "expire", expire)
    for broken[0], whole in ((session, other), (other, session)):
        Session.objects.filter(pk=whole.pk).update(status=Session.Status.PREPARING)
        reaper.reap()
        whole.refresh_from_db()
        assert whole.status == Session.Status.EXPIRED


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        ({"type": "shell", "command": "make", "timeout_ms": 120_000}, 120),
        ({"type": "wait", "duration_ms": 30_000}, 30),
        ({"type": "shell", "command": "make", "timeout_ms": 10**18}, 600),
    ],
)
def test_a_long_command_is_left_its_time(
    session: Session, queue: Any, action: dict[str, Any], seconds: int
) -> None:
    step = decide(session, action=action)
    queue.clear()

    def asked_again(after_s: float) -> bool:
        Step.objects.update(created_at=timezone.now() - timedelta(seconds=after_s))
        queue.clear()
        reaper.reap()
        return any(pk == step.pk for _, pk in queue)

    assert not asked_again(seconds)
    assert asked_again(seconds + reaper.STEP_SILENT.total_seconds() + 1)


def test_a_question_over_which_workers_die_is_given_up_with_its_cause(
    session: Session, queue: Any
) -> None:
    point = steps.request_proposals(session, fence=session.fence)
    queue.clear()
    long_ago = timezone.now() - proposals.WORKER_SILENT * 2
    DecisionPoint.objects.filter(pk=point.pk).update(
        started_at=long_ago, attempts=proposals.ATTEMPTS
    )
    reaper.reap()
    point.refresh_from_db()
    assert point.status == DecisionPoint.Status.FAILED
    assert f"broken off {proposals.ATTEMPTS} times" in point.error
    assert not queue
    assert decide(session, proposal_rank=None, seen="").state == Step.State.CHOSEN
