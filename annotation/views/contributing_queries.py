"""Queries for admins: written by people, proposed by a model, published, retired, imported."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from annotation import access
from annotation.contributing import graph, ingest, proposing, queries, scores
from annotation.contributing.forms import QueryForm
from annotation.errors import Refused
from annotation.forms import ImportForm
from annotation.models import Function, Query
from annotation.recordings import asked
from annotation.views.answers import conflict, members
from annotation.views.contributing import written


@members(access.is_admin)
def new_query(request: HttpRequest, function_id: int) -> HttpResponse:
    return _edit(request, Query(function=_function(function_id)))


@members(access.is_admin)
def query(request: HttpRequest, query_id: int) -> HttpResponse:
    row = Query.objects.select_related("function__application", "task")
    return _edit(request, get_object_or_404(row, pk=query_id))


@require_POST
@members(access.is_admin)
def publish(request: HttpRequest, query_id: int) -> HttpResponse:
    row = get_object_or_404(Query, pk=query_id)
    try:
        queries.publish(row)
    except Refused as error:
        return conflict(request, error)
    messages.success(request, "Recorders are offered it from now on.")
    return redirect("contributing-function", row.function_id)


@require_POST
@members(access.is_admin)
def retire(request: HttpRequest, query_id: int) -> HttpResponse:
    row = queries.retire(get_object_or_404(Query, pk=query_id))
    messages.success(request, "Nobody is asked for it any more; what was recorded stays.")
    return redirect("contributing-function", row.function_id)


@require_POST
@members(access.is_admin)
def ask(request: HttpRequest, function_id: int) -> HttpResponse:
    """Ask the project's writer for queries; they appear on the function's page."""
    row = _function(function_id)
    try:
        proposing.ask(row, level=request.POST.get("level", ""), by=request.user)
    except Refused as error:
        return conflict(request, error)
    messages.success(request, "Asked; what comes stands below as written, for you to publish.")
    return redirect("contributing-function", row.pk)


@members(access.is_admin)
def import_records(request: HttpRequest) -> HttpResponse:
    """Check or import; with mistakes nothing is written and what was typed stays.

    What would change is shown first; who imports it after that has agreed to just those changes.
    """
    form = ImportForm(request.POST or None, request.FILES or None)
    values: dict[str, object] = {"form": form, "text": "", "checked": None, "fields": ingest.FIELDS}
    if request.method != "POST":
        return render(request, "contributing/import.html", values)
    valid = form.is_valid()
    values["text"] = form.cleaned_data.get("text") or request.POST.get("text", "")
    if not valid:
        return render(request, "contributing/import.html", values, status=400)
    update = request.POST.get("update") == "on"
    report = ingest.import_records(
        form.cleaned_data["text"], format=form.cleaned_data["format"], by=request.user,
        dry_run=request.POST.get("do") == "check", update=update,
        agreed=request.POST.get("agreed", ""),
    )  # fmt: skip
    if report.ok and not report.dry_run:
        known = f"; {len(report.existing)} stay as they were" if report.existing else ""
        lines = len({change.line for change in report.changes})
        updated = f", updated {lines}" if lines else ""
        messages.success(request, f"Imported {len(report.created)} records{updated}{known}.")
        if not report.changes:
            return redirect("contributing")
        done = {"changes": report.changes, "undo": report.undo}
        return render(request, "contributing/updated.html", done)
    # A file can't be put back into its box: show what it held, so that it can be corrected here.
    form.data = form.data.copy()
    form.data["format"] = form.cleaned_data["format"]
    values |= {
        "problems": report.problems,
        "checked": len(report.created) if report.ok else None,
        "existing": len(report.existing),
        "update": update,
        "changes": report.changes if report.ok else [],
        "agreed": report.token,
    }
    return render(request, "contributing/import.html", values, status=200 if report.ok else 400)


def _edit(request: HttpRequest, row: Query) -> HttpResponse:
    form = QueryForm(request.POST or None, instance=row)
    if request.method == "POST" and written(
        form,
        lambda: queries.write(form.instance, by=request.user, also=list(form.cleaned_data["also"])),
    ):
        messages.success(request, "Saved.")
        return redirect("contributing-function", row.function_id)
    counts = asked.counted().filter(pk=row.task_id).first() if row.task_id else None
    values = {
        "query": row,
        "form": form,
        "rubric": [form[name] for name in Query.RUBRIC],
        "band": scores.difficulty_band(row),
        "way": graph.path(row.function),
        "counts": counts,
    }
    status = 400 if form.errors else 200
    return render(request, "contributing/query.html", values, status=status)


def _function(function_id: int) -> Function:
    return get_object_or_404(Function.objects.select_related("application"), pk=function_id)
