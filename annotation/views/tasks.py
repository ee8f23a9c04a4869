"""Tasks for admins: the list, one task, and the import."""

from __future__ import annotations

import json

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from annotation import access
from annotation.forms import ImportForm, TaskFilter
from annotation.models import Session, Task
from annotation.tasks import ingest
from annotation.tasks import tasks as verbs
from annotation.views.answers import members

PER_PAGE = 50


@members(access.is_admin)
def tasks(request: HttpRequest) -> HttpResponse:
    """List tasks, filtered by text, state and domain."""
    form = TaskFilter(request.GET)
    wanted = form.cleaned_data if form.is_valid() else {}
    rows = (
        access.tasks_for(request.user)
        .annotate(
            session_count=Count("sessions"),
            accepted_count=Count("sessions", filter=Q(sessions__status=Session.Status.ACCEPTED)),
        )
        .order_by("-priority", "pk")
    )
    if words := wanted.get("q"):
        rows = rows.filter(Q(instruction__icontains=words) | Q(external_id__icontains=words))
    for name in ("state", "domain"):
        if wanted.get(name):
            rows = rows.filter(**{name: wanted[name]})
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "form": form,
        "page": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "domains": Task.objects.exclude(domain="").order_by("domain")
        .values_list("domain", flat=True).distinct(),
        "filtered": any(wanted.values()),
        "query": query.urlencode(),
    }  # fmt: skip
    return render(request, "annotation/tasks.html", context)


@members(access.is_admin)
def task(request: HttpRequest, task_id: int) -> HttpResponse:
    """Show one task and what became of it."""
    row = access.task_for(request.user, task_id)
    context = {
        "task": row,
        "setup": json.dumps(row.setup, indent=1, ensure_ascii=False),
        "verifier": json.dumps(row.verifier, indent=1, ensure_ascii=False),
        "sessions": row.sessions.select_related("author")
        .annotate(step_count=Count("steps")).order_by("-pk"),
        "skips": row.skips.select_related("user"),
    }  # fmt: skip
    return render(request, "annotation/task.html", context)


@require_POST
@members(access.is_admin)
def retire(request: HttpRequest, task_id: int) -> HttpResponse:
    """Take a task out of the queue."""
    row = verbs.retire(access.task_for(request.user, task_id))
    messages.success(request, f"{row.external_id} has left the queue.")
    return redirect("task", task_id)


@members(access.is_admin)
def import_tasks(request: HttpRequest) -> HttpResponse:
    """Check or import tasks; with mistakes nothing is written and what was typed stays."""
    form = ImportForm(request.POST or None, request.FILES or None)
    context: dict[str, object] = {"form": form, "text": "", "checked": None}
    if request.method != "POST":
        return render(request, "annotation/import.html", context)
    valid = form.is_valid()
    context["text"] = form.cleaned_data.get("text") or request.POST.get("text", "")
    if not valid:
        return render(request, "annotation/import.html", context, status=400)
    dry_run = request.POST.get("do") == "check"
    report = ingest.import_tasks(
        form.cleaned_data["text"], format=form.cleaned_data["format"], dry_run=dry_run
    )
    if report.ok and not dry_run:
        known = f"; {len(report.existing)} were there already" if report.existing else ""
        messages.success(request, f"Imported {len(report.created)} tasks{known}.")
        return redirect("tasks")
    # A file can't be put back into its box: show what it held, so that it can be corrected here.
    form.data = form.data.copy()
    form.data["format"] = form.cleaned_data["format"]
    context |= {
        "problems": report.problems,
        "checked": len(report.created) if report.ok else None,
        "existing": len(report.existing),
    }
    return render(request, "annotation/import.html", context, status=200 if report.ok else 400)
