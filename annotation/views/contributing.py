"""What contributors are asked to record, for admins: applications, their trees, the project's settings."""

from __future__ import annotations

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from annotation import access
from annotation.contributing import dispatch, graph, scores
from annotation.contributing.forms import ApplicationForm, FunctionForm, ProjectForm
from annotation.contributing.scores import Cell
from annotation.errors import Refused
from annotation.models import Application, Function, Level, Query
from annotation.views.answers import conflict, members


def written(form: forms.ModelForm, write: Callable[[], object]) -> bool:
    """Whether a posted form was valid and `write` took it; a refusal stands above the form."""
    if not form.is_valid():
        return False
    try:
        write()
    except Refused as error:
        form.add_error(None, str(error))
        return False
    return True


@members(access.is_admin)
def contributing(request: HttpRequest) -> HttpResponse:
    """Show the applications by their score, and what came of every cell."""
    project = graph.project()
    rows = Application.objects.annotate(
        functions_n=Count("functions", distinct=True),
        queries_n=Count("functions__queries", distinct=True),
        published_n=Count(
            "functions__queries",
            filter=Q(functions__queries__state=Query.State.PUBLISHED),
            distinct=True,
        ),
    )
    scored = sorted(((scores.score(row, project), row) for row in rows), key=lambda pair: -pair[0])
    found = dispatch.coverage()
    cells = [
        (band, [(hard, found.get(Cell(band, hard))) for hard in scores.HARD])
        for band in reversed(scores.BANDS)
    ]
    values = {"project": project, "scored": scored, "cells": cells, "hard": scores.HARD}
    return render(request, "contributing/contributing.html", values)


@members(access.is_admin)
def settings(request: HttpRequest) -> HttpResponse:
    form = ProjectForm(request.POST or None, instance=graph.project())
    if request.method == "POST" and written(form, lambda: graph.save(form.instance)):
        messages.success(request, "Saved; what is offered next follows these weights.")
        return redirect("contributing")
    return _page(request, form, "Settings", _way())


@members(access.is_admin)
def new_application(request: HttpRequest) -> HttpResponse:
    form = ApplicationForm(request.POST or None)
    if request.method == "POST" and written(form, lambda: graph.save(form.instance)):
        return redirect("contributing-application", form.instance.pk)
    return _page(request, form, "New application", _way())


@members(access.is_admin)
def application(request: HttpRequest, application_id: int) -> HttpResponse:
    """Show an application's tree, or write its scores."""
    row = get_object_or_404(Application, pk=application_id)
    form = ApplicationForm(request.POST or None, instance=row)
    if request.method == "POST" and written(form, lambda: graph.save(form.instance)):
        messages.success(request, "Saved.")
        return redirect("contributing-application", row.pk)
    values = {
        "application": Application.objects.get(pk=row.pk),
        "form": form,
        "score": scores.score(row, graph.project()),
        "nodes": graph.tree(row),
    }
    status = 400 if form.errors else 200
    return render(request, "contributing/application.html", values, status=status)


@require_POST
@members(access.is_admin)
def delete_application(request: HttpRequest, application_id: int) -> HttpResponse:
    row = get_object_or_404(Application, pk=application_id)
    try:
        graph.delete_application(row)
    except Refused as error:
        return conflict(request, error)
    messages.success(request, f"{row.name} is deleted.")
    return redirect("contributing")


@members(access.is_admin)
def new_function(request: HttpRequest, application_id: int) -> HttpResponse:
    above = get_object_or_404(Application, pk=application_id)
    given = request.GET.get("parent", "")
    form = FunctionForm(
        request.POST or None,
        instance=Function(application=above),
        initial={"parent": given if given.isdecimal() else ""},
    )
    if request.method == "POST" and written(form, lambda: graph.save_function(form.instance)):
        return redirect("contributing-function", form.instance.pk)
    return _page(request, form, "New function", _way(above))


@members(access.is_admin)
def function(request: HttpRequest, function_id: int) -> HttpResponse:
    """Show a function with its queries, or write what it is worth."""
    row = get_object_or_404(Function.objects.select_related("application"), pk=function_id)
    form = FunctionForm(request.POST or None, instance=row)
    if request.method == "POST" and written(form, lambda: graph.save_function(form.instance)):
        messages.success(request, "Saved.")
        return redirect("contributing-function", row.pk)
    row = Function.objects.select_related("application").get(pk=row.pk)
    worth = graph.importances(row.application)[row.pk]
    queries = list(row.queries.select_related("task").prefetch_related("also"))
    for query in queries:
        query.band = scores.difficulty_band(query)
    values = {
        "function": row,
        "form": form,
        "importance": worth,
        "band": scores.importance_band(worth),
        "above": graph.path(row)[:-1],
        "queries": queries,
        "requests": row.requests.all()[:5],
        "writer": graph.project().writer,
        "levels": Level.choices,
    }
    status = 400 if form.errors else 200
    return render(request, "contributing/function.html", values, status=status)


@require_POST
@members(access.is_admin)
def delete_function(request: HttpRequest, function_id: int) -> HttpResponse:
    row = get_object_or_404(Function, pk=function_id)
    try:
        graph.delete_function(row)
    except Refused as error:
        return conflict(request, error)
    messages.success(request, f"{row.name} is deleted.")
    return redirect("contributing-application", row.application_id)


def _way(above: Application | None = None) -> list[tuple[str, str]]:
    way = [("Contributing", reverse("contributing"))]
    if above is not None:
        way.append((above.name, reverse("contributing-application", args=[above.pk])))
    return way


def _page(
    request: HttpRequest, form: forms.BaseForm, title: str, way: list[tuple[str, str]]
) -> HttpResponse:
    values = {"form": form, "title": title, "way": way}
    return render(request, "contributing/form.html", values, status=400 if form.errors else 200)
