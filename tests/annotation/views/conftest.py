"""Rows that the pages show, written without the verbs that make them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Decision, DecisionPoint, Proposal, Session, Step, Task
from annotation.session import pictures
from sandbox.models import Lease, Sandbox
from tests.annotation.views.web import CLICK


@pytest.fixture
def task(db) -> Task:
    return Task.objects.create(
        external_id="t-1", instruction="Press <ok>", domain="demo", guidelines="Be quick."
    )


@pytest.fixture
def session(task, annotator) -> Session:
    """A live session of the annotator with three proposals, one of them unreadable."""
    picture = pictures.put(b"\x89PNG not looked at")
    computer = Sandbox.objects.create(name="box", provider="local", host="here")
    lease = Lease.objects.create(
        sandbox=computer, epoch=1, owner=annotator, idempotency_key="k",
        expires_at=timezone.now() + timedelta(minutes=5),
        hard_expires_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    session = Session.objects.create(
        task=task, author=annotator, lease=lease, status=Session.Status.ACTIVE,
        expires_at=timezone.now() + timedelta(minutes=2),
    )  # fmt: skip
    point = DecisionPoint.objects.create(
        session=session, index=0, status=DecisionPoint.Status.READY, screenshot=picture,
        observation={"screenshot": picture, "width": 1280, "height": 720}, model_ms=12,
    )  # fmt: skip
    for rank, action in enumerate([CLICK, {**CLICK, "x": 90}, None], start=1):
        Proposal.objects.create(
            decision_point=point, rank=rank, thought=f"thought {rank}", action=action,
            error="" if action else "no action in the text", model_version="v7",
        )  # fmt: skip
    return session


@pytest.fixture
def submitted(session) -> Session:
    """The same session after one step, waiting for review."""
    point = session.decision_points.get()
    step = Step.objects.create(
        session=session, index=0, observation=point.observation, screenshot=point.screenshot,
        thought="thought 1", action=CLICK, actor="agent", action_id="a-1", state="executed",
    )  # fmt: skip
    Decision.objects.create(
        step=step, decision_point=point, proposal=point.proposals.first(), kind="accepted"
    )
    session.status, session.outcome = Session.Status.SUBMITTED, "finished"
    session.finished_at = timezone.now()
    session.save()
    return session
