"""A session step by step, for its author, reviewers and admins."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.models import Session, Step, StepReview
from annotation.session import steps

MARK_KEYS = {"right": "R", "wrong": "W", "redundant": "D"}


def replay(request: HttpRequest, session: Session) -> HttpResponse:
    """Show a session that nobody works in; a returned one can be amended by its author."""
    amend = session.author_id == request.user.pk and session.status == Session.Status.RETURNED
    context = {**replay_context(session), "amend": amend}
    context["missing"] = steps.missing_thoughts(session) if amend else []
    return render(request, "annotation/session.html", context)


def replay_context(session: Session) -> dict[str, Any]:
    """Return the steps of a session with what was proposed, decided and said about each."""
    rows = list(
        Step.objects.filter(session=session)
        .select_related("decision__decision_point", "decision__proposal")
        .prefetch_related("decision__decision_point__proposals", "reviews__review")
        .order_by("index")
    )
    return {
        "action_records": {step.index: step.action for step in rows},
        "mark_choices": [(*choice, MARK_KEYS[choice[0]]) for choice in StepReview.Mark.choices],
        "session": session,
        "task": session.task,
        "steps": rows,
        "reviews": session.reviews.select_related("reviewer").order_by("-at"),
    }
