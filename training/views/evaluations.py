"""Pages of evaluations: list, begin, one live, its episodes, two beside each other, exports."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from training import access
from training.errors import BadConfig, NameTaken, Refused
from training.evaluations import evaluations as verbs
from training.evaluations import suites
from training.evaluations.exports import FORMATS, about
from training.evaluations.forms import EvaluationForm
from training.evaluations.results import SOLVED
from training.models import Episode, Evaluation, Rollout

ENOUGH = 286
"""The status with which htmx stops asking."""
TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}


@access.staff_only
@require_GET
def evaluations(request: HttpRequest) -> HttpResponse:
    ended = Count(
        "rollout__episodes", filter=~Q(rollout__episodes__state__in=("waiting", "running"))
    )
    rows = Evaluation.objects.select_related("rollout__deployment").annotate(ended=ended)
    page = Paginator(rows.order_by("-pk"), 50).get_page(request.GET.get("page"))
    return render(request, "training/evaluations.html", {"section": "evaluations", "page": page})


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    """Begin an evaluation; what was typed stays where something is wrong with it."""
    form = EvaluationForm(request.POST or None, initial=request.GET.dict())
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("training:evaluation", _begin(request, form.cleaned_data).pk)
        except BadConfig as error:
            for field, message in error.errors.items():
                form.add_error(field if field in form.fields else None, message)
        except NameTaken as error:
            form.add_error("name", str(error))
        except Refused as error:
            form.add_error("suite", str(error))
    context = {"section": "evaluations", "form": form}
    return render(request, "training/evaluation_new.html", context)


def _begin(request: HttpRequest, asked: dict[str, Any]) -> Evaluation:
    suite = suites.load(asked["suite"])
    name = asked["name"] or verbs.free_name(suite.name, asked["deployment"].name)
    return verbs.begin(
        name=name,
        suite=suite,
        deployment=asked["deployment"],
        seeds=asked["seeds"],
        repeats=asked["repeats"],
        max_steps=asked["max_steps"],
        by=request.user,  # type: ignore[arg-type]
    )


@access.staff_only
@require_GET
def evaluation(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.evaluation_for(request, pk)
    others = Evaluation.objects.filter(suite=row.suite).exclude(pk=row.pk).order_by("-pk")[:20]
    context = {"section": "evaluations", "others": others, "formats": TYPES, **_panel(row)}
    return render(request, "training/evaluation.html", context)


@access.staff_only
@require_GET
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the figures of now; says with its status when there will be no others."""
    row = access.evaluation_for(request, pk)
    context = _panel(row)
    status = 200 if context["live"] else ENOUGH
    return render(request, "training/_evaluation_panel.html", context, status=status)


def _panel(row: Evaluation) -> dict[str, Any]:
    report = verbs.report(row)
    done = report["overall"]["episodes"] - report["overall"]["open"]
    return {
        "evaluation": row,
        "report": report,
        "about": about(report)[1:],
        "done": done,
        "live": row.rollout.state in Rollout.LIVE,
    }


@access.staff_only
@require_GET
def episodes(request: HttpRequest, pk: int) -> HttpResponse:
    """List the episodes, of ?task= and by how they ended: ?result=solved, missed or broken."""
    row = access.evaluation_for(request, pk)
    rows = row.rollout.episodes.order_by("pk")
    family, _, task = request.GET.get("task", "").partition("/")
    if task:
        rows = rows.filter(family=family, task=task)
    result = request.GET.get("result", "")
    if result == "solved":
        rows = rows.filter(reward__gte=SOLVED)
    elif result == "missed":
        rows = rows.filter(reward__lt=SOLVED)
    elif result == "broken":
        rows = rows.filter(state=Episode.State.BROKEN)
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "section": "evaluations",
        "evaluation": row,
        "tasks": [one["id"] for one in row.tasks],
        "task": request.GET.get("task", ""),
        "result": result,
        "query": query.urlencode(),
        "page": Paginator(rows, 100).get_page(request.GET.get("page")),
    }
    return render(request, "training/evaluation_episodes.html", context)


@access.staff_only
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Show two evaluations beside each other: ?evaluations=1&evaluations=2, the older first."""
    wanted = [int(pk) for pk in request.GET.getlist("evaluations") if pk.isdecimal()]
    rows = [access.evaluation_for(request, pk) for pk in sorted(set(wanted))]
    context: dict[str, Any] = {"section": "evaluations", "asked": len(rows)}
    if len(rows) == 2:
        context |= _beside(*rows)
    return render(request, "training/evaluation_compare.html", context)


def _beside(first: Evaluation, second: Evaluation) -> dict[str, Any]:
    reports = [verbs.report(first), verbs.report(second)]
    found = verbs.beside(first, second)
    names = [
        *reports[0]["tasks"],
        *(id for id in reports[1]["tasks"] if id not in reports[0]["tasks"]),
    ]
    checksums = [{task["id"]: task["checksum"] for task in row.tasks} for row in (first, second)]
    changed = [
        id for id in checksums[0] if checksums[1].get(id, checksums[0][id]) != checksums[0][id]
    ]
    families = sorted({*reports[0]["families"], *reports[1]["families"]})
    return {
        "first": first,
        "second": second,
        "reports": reports,
        "found": found,
        "words": found.in_words(first.name, second.name) if found else "",
        "changed": changed,
        "tables": [
            ("Families", [(n, *(one["families"].get(n) for one in reports)) for n in families]),
            ("Tasks", [(n, *(one["tasks"].get(n) for one in reports)) for n in names]),
        ],
        "curves": [{"name": one["name"], "points": one["curve"]} for one in reports],
        "differs": [
            (label, *values)
            for label, values in (
                ("deployment", [one["deployment"] for one in reports]),
                ("version", [one["version"] or "not stated" for one in reports]),
                ("reads", [one["reads"] for one in reports]),
                ("steps at most", [one["max_steps"] for one in reports]),
                ("temperature", [one["temperature"] for one in reports]),
                ("samples of a seed", [one["repeats"] for one in reports]),
                ("state", [one["state"] for one in reports]),
            )
        ],
    }


@access.staff_only
@require_GET
def export(request: HttpRequest, pk: int, form: str) -> HttpResponse:
    """Return the report as a file: json, csv or md."""
    row = access.evaluation_for(request, pk)
    if form not in TYPES:
        raise Http404(f"there are {', '.join(TYPES)}")
    headers = {"Content-Disposition": f'attachment; filename="{row.name}.{form}"'}
    text = FORMATS[form](verbs.report(row))
    return HttpResponse(text, content_type=TYPES[form], headers=headers)


@access.staff_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.evaluation_for(request, pk)
    try:
        verbs.cancel(row)
    except Refused as error:
        messages.error(request, str(error))
    return redirect("training:evaluation", row.pk)
