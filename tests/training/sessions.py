"""Finished sessions as rows, for the tests of datasets and runs."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from annotation.models import Review, Session, Step, StepReview, Task
from trajectory import (
    Action,
    Click,
    Element,
    Finish,
    Observation,
    action_to_dict,
    observation_to_dict,
)

PICTURE = "ab" * 32


def observation(**changes: Any) -> dict[str, Any]:
    """A screen with two things on it, as JSON."""
    values: dict[str, Any] = {
        "screenshot": PICTURE,
        "width": 1280,
        "height": 720,
        "elements": (
            Element("button", "ok", (100, 100, 80, 30)),
            Element("textbox", "user", (100, 200, 200, 30), value="bob"),
        ),
    }
    return observation_to_dict(Observation(**values | changes))


def make_session(
    *,
    task: str = "miniwob/click-button",
    actions: tuple[Action, ...] = (Click(120, 110), Finish()),
    status: str = "accepted",
    verdict: str = "accepted",
    reward: float | None = 1.0,
    outcome: str = "finished",
    pseudonym: str = "A-17",
    marks: dict[int, dict[str, Any]] | None = None,
    domain: str = "web",
    **changes: Any,
) -> Session:
    """Make a session with one executed step per action, its review, and marks by step index."""
    row, _ = Task.objects.get_or_create(
        external_id=task, defaults={"instruction": f"Do {task}.", "domain": domain}
    )
    session = Session.objects.create(
        task=row, status=status, reward=reward, outcome=outcome, pseudonym=pseudonym,
        expires_at=timezone.now() + dt.timedelta(hours=1), **changes,
    )  # fmt: skip
    steps = [
        Step.objects.create(
            session=session,
            index=index,
            observation=observation(),
            screenshot=PICTURE,
            thought=f"I do step {index}.",
            action=action_to_dict(action),
            actor="human",
            action_id=f"{session.pk}-{index}",
            state=Step.State.EXECUTED,
        )
        for index, action in enumerate(actions)
    ]
    if verdict:
        review = Review.objects.create(session=session, verdict=verdict)
        for index, mark in (marks or {}).items():
            StepReview.objects.create(review=review, step=steps[index], **mark)
    return session
