"""The start page: where a person's work is."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agent.models import Deployment
from annotation import access
from annotation.forms import ExportForm
from annotation.models import Decision, Session, Task


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Send annotators to the queue and reviewers to reviews; show admins the state of things."""
    user = request.user
    if access.is_admin(user):
        return render(request, "annotation/home.html", _overview())
    if access.is_annotator(user):
        return redirect("queue")
    if access.is_reviewer(user):
        return redirect("reviews")
    return render(request, "annotation/no_role.html")


def _overview() -> dict[str, object]:
    tasks = dict(Task.objects.values_list("state").annotate(Count("pk")))
    sessions = dict(Session.objects.values_list("status").annotate(Count("pk")))
    kinds = dict(Decision.objects.values_list("kind").annotate(Count("pk")))
    proposed = sum(kinds.values()) - kinds.get(Decision.Kind.TAKEN_OVER, 0)
    return {
        "export": ExportForm(),
        "domains": Task.objects.exclude(domain="")
        .order_by("domain")
        .values_list("domain", flat=True)
        .distinct(),
        "tasks": tasks,
        "sessions": sessions,
        "decisions": sum(kinds.values()),
        "accept_rate": round(100 * kinds.get(Decision.Kind.ACCEPTED, 0) / proposed)
        if proposed
        else None,
        "kinds": sorted(((Decision.Kind(kind).label, n) for kind, n in kinds.items())),
        "partner": Deployment.objects.filter(is_partner=True).first(),
        "live": Session.objects.filter(status__in=Session.LIVE).select_related("task", "author"),
        "recent": Session.objects.exclude(status__in=Session.LIVE)
        .select_related("task", "author")
        .annotate(step_count=Count("steps"))
        .order_by("-pk")[:8],
    }
