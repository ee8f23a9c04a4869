"""The annotator's page: start, go on, and see how it goes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agent.models import Deployment
from annotation import access
from annotation.errors import NoTask, Refused
from annotation.models import Decision, Session
from annotation.session import sessions
from annotation.tasks import tasks
from annotation.views.answers import members


@members(access.is_annotator)
def queue(request: HttpRequest) -> HttpResponse:
    """Show what waits for the annotator."""
    mine = (
        Session.objects.filter(author_id=request.user.pk, mode=Session.Mode.INTERACTIVE)
        .select_related("task")
        .annotate(step_count=Count("steps"))
    )
    returned = mine.filter(status=Session.Status.RETURNED).prefetch_related("reviews")
    context = {
        "live": mine.filter(status__in=Session.LIVE).first(),
        "returned": returned.order_by("pk"),
        "expired": mine.filter(status=Session.Status.EXPIRED, outcome="").order_by("-pk")[:10],
        "recent": mine.filter(status__in=access.REVIEWABLE).order_by("-pk")[:10],
        "open_count": tasks.offered(request.user).count(),
        "partner": Deployment.objects.filter(is_partner=True).first(),
        "numbers": numbers(request.user.pk),
    }
    return render(request, "annotation/queue.html", context)


@require_POST
@members(access.is_annotator)
def start(request: HttpRequest) -> HttpResponse:
    """Open the annotator's live session, or the next task."""
    try:
        session = sessions.start(user=request.user)
    except NoTask as error:
        messages.info(request, str(error))
        return redirect("queue")
    except Refused as error:
        messages.error(request, str(error))
        return redirect("queue")
    return redirect("workbench", session.pk)


def numbers(user_id: int) -> dict[str, Any]:
    """Return how many sessions of a person were accepted, and how often the model was right."""
    own = Session.objects.filter(author_id=user_id, mode=Session.Mode.INTERACTIVE)
    verdicts = dict(own.values_list("status").annotate(Count("pk")))
    kinds = dict(Decision.objects.filter(by_id=user_id).values_list("kind").annotate(Count("pk")))
    proposed = sum(kinds.values()) - kinds.get(Decision.Kind.TAKEN_OVER, 0)
    accepted = kinds.get(Decision.Kind.ACCEPTED, 0)
    return {
        "accepted": verdicts.get(Session.Status.ACCEPTED, 0),
        "waiting": verdicts.get(Session.Status.SUBMITTED, 0),
        "steps": sum(kinds.values()),
        "accept_rate": round(100 * accepted / proposed) if proposed else None,
        "active_ms": own.aggregate(total=Sum("active_ms"))["total"] or 0,
    }
