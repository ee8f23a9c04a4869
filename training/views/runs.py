"""Pages of runs: list, one run live, several on one plot."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from training import access
from training.errors import Refused, WrongState
from training.guide import GUIDES
from training.models import Episode, Metric, Run
from training.presets import fields_of
from training.runs import runs as verbs
from training.runs import series, tensorboard
from training.views import samples

MAX_POINTS = 2000  # of one answer; the page asks again for the rest
EPISODES = 12  # newest ones that a run's page shows
COMPARED = 8  # runs on one plot
OTHERS = 40  # that can be added there
AXES = {"step": "Step", "time": "Wall time", "tokens": "Tokens"}


@access.staff_only
@require_GET
def runs(request: HttpRequest) -> HttpResponse:
    rows = Run.objects.select_related("dataset", "base", "created_by").order_by("-pk")
    page = Paginator(rows, 50).get_page(request.GET.get("page"))
    return render(request, "training/runs.html", {"section": "runs", "page": page})


@access.staff_only
@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.run_for(request, pk)
    return render(request, "training/run.html", {"section": "runs", **_panel(row)})


@access.staff_only
@require_GET
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    """Return state, buttons and checkpoints, asked for again when metrics.json says they changed."""
    context = {**_panel(access.run_for(request, pk)), "oob": True}
    return render(request, "training/_run_panel.html", context)


def _panel(run: Run) -> dict[str, Any]:
    config = [(f.label, run.config[f.name]) for f in fields_of(run.kind) if f.name in run.config]
    described = series.described(run.kind)
    return {
        "run": run,
        "guide": GUIDES[run.kind],
        "plots": described,
        "headline": [series.SERIES[key] for key in series.HEADLINE[run.kind]],
        "measure": series.SERIES[(series.HEADLINE[run.kind] or ("loss",))[0]],
        "stamp": _stamp(run),
        "checkpoints": _measured(run),
        "mixed": run.mixed.select_related("dataset"),
        "sources": run.sources.select_related("checkpoint"),
        "episodes": _episodes(run),
        "has_rows": run.kind in samples.KINDS,
        "config": config,
        "can_resume": run.state in (Run.State.CANCELLED, Run.State.FAILED),
        "can_cancel": run.state in (Run.State.QUEUED, Run.State.RUNNING),
    }


def _measured(run: Run) -> list[dict[str, Any]]:
    """Return the checkpoints, newest first, with the number that tells how good each is."""
    key = (series.HEADLINE[run.kind] or ("loss",))[0]
    rows = run.checkpoints.order_by("-step")
    return [{"checkpoint": row, "measure": row.metrics.get(key)} for row in rows]


def _episodes(run: Run) -> Any:
    """Return the newest finished episodes that a run plays or learns from; nothing for other kinds."""
    if run.rollout is None:
        return Episode.objects.none()
    done = run.rollout.episodes.filter(state=Episode.State.DONE)
    return done.order_by("-sequence", "-pk")[:EPISODES]


def _stamp(run: Run) -> str:
    """Return what changes whenever the panel would look different."""
    # Episodes are shown anew with each update, and as they come before the first.
    shown = len(_episodes(run)) if run.kind == Run.Kind.PPO else 0
    step = run.step if run.kind == Run.Kind.PPO else 0
    return f"{run.state}-{run.checkpoints.count()}-{run.attempts}-{step}-{shown}"


@access.staff_only
@require_GET
def metrics(request: HttpRequest, pk: int) -> JsonResponse:
    """Return the points after step ?after=N, at most 2000, and where the run stands."""
    row = access.run_for(request, pk)
    after = request.GET.get("after", "-1")
    lines = Metric.objects.filter(run=row)
    if after.isdecimal():
        lines = lines.filter(step__gt=int(after))
    points = list(lines.values_list("step", "values")[: MAX_POINTS + 1])
    return JsonResponse(
        {
            "state": row.state,
            "ended": row.ended,
            "step": row.step,
            "total": row.total_steps,
            "latest": row.metrics,
            "stamp": _stamp(row),
            "log": row.log,
            "points": [
                series.point(row.kind, step, values) for step, values in points[:MAX_POINTS]
            ],
            "more": len(points) > MAX_POINTS,
        }
    )


@access.staff_only
@require_GET
def rows(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the first rows that a run over frozen data learns from, as a fragment."""
    row = access.run_for(request, pk)
    if row.kind not in samples.KINDS:
        raise Http404
    return render(request, "training/_run_sample.html", samples.of_run(row))


@access.staff_only
@require_GET
def events(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the run's numbers as one event file of TensorBoard."""
    row = access.run_for(request, pk)
    lines = Metric.objects.filter(run=row).values_list("step", "values")
    return HttpResponse(
        tensorboard.event_file(lines),
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="events.out.tfevents.{row.name}"'},
    )


@access.staff_only
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Show the runs of ?runs=1,2 (or runs=1&runs=2) on one plot of ?metric= over ?x=."""
    asked = ",".join(request.GET.getlist("runs")).split(",")
    wanted = [int(pk) for pk in dict.fromkeys(asked) if pk.isdecimal()][:COMPARED]
    chosen = [access.run_for(request, pk) for pk in wanted]
    choices = series.common(row.kind for row in chosen)
    metric = request.GET.get("metric", "")
    if metric not in {one.key for one in choices}:
        metric = choices[0].key if choices else ""
    x = request.GET.get("x", "")
    context = {
        "section": "runs",
        "runs": chosen,
        "others": Run.objects.exclude(pk__in=wanted).order_by("-pk")[:OTHERS],
        "differences": _differences(chosen),
        "choices": choices,
        "metric": metric,
        "axes": AXES,
        "x": x if x in AXES else "step",
        "latest": [row.metrics.get(metric) for row in chosen],
    }
    return render(request, "training/compare.html", context)


def _differences(chosen: list[Run]) -> list[tuple[str, list[Any]]]:
    """Return what the runs start from and are configured with, where it is not the same for all."""
    starts = ("kind", "base", "dataset", "critic", "rollout")
    table = [(name, [getattr(row, name) or "" for row in chosen]) for name in starts]
    table.append(("mixed in", [_shares(row.mixed.all(), "dataset") for row in chosen]))
    table.append(("sources", [_shares(row.sources.all(), "checkpoint") for row in chosen]))
    fields = {f.name: f.label for row in chosen for f in fields_of(row.kind)}
    table += [
        (label, [row.config.get(name, "") for row in chosen]) for name, label in fields.items()
    ]
    return [(name, values) for name, values in table if len(set(map(str, values))) > 1]


def _shares(shares: Any, what: str) -> str:
    return ", ".join(f"{getattr(one, what)} × {one.weight:g}" for one in shares)


@access.staff_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.run_for(request, pk)
    try:
        verbs.cancel(row)
    except WrongState as error:
        messages.error(request, str(error))
    return redirect("training:run", row.pk)


@access.staff_only
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.run_for(request, pk)
    try:
        verbs.resume(row)
    except Refused as error:
        messages.error(request, str(error))
    return redirect("training:run", row.pk)
