"""Pages of runs: list, launch, one run live, several on one plot."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agent.models import Deployment
from training import access
from training import runs as verbs
from training.errors import BadConfig, NameTaken, Refused, WrongState
from training.forms import LaunchForm
from training.models import Checkpoint, Dataset, Metric, Run
from training.presets import fields_of, presets_of

MAX_POINTS = 2000  # of one answer; the page asks again for the rest


@access.staff_only
@require_GET
def runs(request: HttpRequest) -> HttpResponse:
    rows = Run.objects.select_related("dataset", "created_by").order_by("-pk")
    page = Paginator(rows, 50).get_page(request.GET.get("page"))
    return render(request, "training/runs.html", {"section": "runs", "page": page})


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    """Launch a run; the form starts from ?preset=, ?dataset=, ?base= and ?clone=RUN."""
    form = LaunchForm(request.POST or None, initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            run = verbs.launch(
                kind=values["kind"],
                dataset=values["dataset"],
                base=values["base"],
                config=form.config(),
                name=values["name"],
                by=request.user,  # type: ignore[arg-type]
            )
        except BadConfig as error:
            for field, message in error.errors.items():
                form.add_error(field if field in form.fields else None, message)
        except NameTaken as error:
            form.add_error("name", str(error))
        else:
            return redirect("training:run", run.pk)
    context = {
        "section": "runs",
        "form": form,
        "presets": presets_of(Run.Kind.SFT),
        "datasets": Dataset.objects.exists(),
        "checkpoints": Checkpoint.objects.exists(),
    }
    return render(request, "training/run_new.html", context)


def _initial(request: HttpRequest) -> dict[str, Any]:
    asked = request.GET
    initial: dict[str, Any] = dict(
        presets_of("sft").get(asked.get("preset", ""), presets_of("sft")["standard"])
    )
    # What the annotators work beside; without one, the newest.
    partner = Deployment.objects.filter(is_partner=True).values_list("version", flat=True)
    known = Checkpoint.objects.order_by("-pk")
    base = known.filter(version__in=partner).first() or known.first()
    newest = Dataset.objects.filter(pool=Dataset.Pool.SFT).order_by("-pk").first()
    initial |= {
        "kind": Run.Kind.SFT,
        "base": base.pk if base else None,
        "dataset": newest.pk if newest else None,
    }
    if asked.get("clone", "").isdigit():
        initial |= verbs.launch_values(access.run_for(request, int(asked["clone"])))
    for name in ("dataset", "base"):
        if asked.get(name, "").isdigit():
            initial[name] = int(asked[name])
    if dataset := Dataset.objects.filter(pk=initial.get("dataset")).first():
        initial["kind"] = dataset.pool
    return initial


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
    return {
        "run": run,
        "stamp": _stamp(run),
        "checkpoints": run.checkpoints.order_by("-step"),
        "config": config,
        "can_resume": run.state in (Run.State.CANCELLED, Run.State.FAILED),
        "can_cancel": run.state in (Run.State.QUEUED, Run.State.RUNNING),
    }


def _stamp(run: Run) -> str:
    """Return what changes whenever the panel would look different."""
    return f"{run.state}-{run.checkpoints.count()}-{run.attempts}"


@access.staff_only
@require_GET
def metrics(request: HttpRequest, pk: int) -> JsonResponse:
    """Return the points after step ?after=N, at most 2000, and where the run stands."""
    row = access.run_for(request, pk)
    after = request.GET.get("after", "-1")
    series = Metric.objects.filter(run=row)
    if after.isdigit():
        series = series.filter(step__gt=int(after))
    points = list(series.values_list("step", "values")[: MAX_POINTS + 1])
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
                {"step": step} | {name: values.get(name) for name in ("loss", "lr", "grad_norm")}
                for step, values in points[:MAX_POINTS]
            ],
            "more": len(points) > MAX_POINTS,
        }
    )


@access.staff_only
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Show the loss of the runs of ?runs=1,2 (or runs=1&runs=2) on one plot."""
    asked = ",".join(request.GET.getlist("runs")).split(",")
    wanted = [int(pk) for pk in dict.fromkeys(asked) if pk.isdigit()]
    rows = [access.run_for(request, pk) for pk in wanted[:8]]
    table = [
        (field.label, values)
        for field in fields_of(rows[0].kind if rows else "sft")
        if len(set(map(str, values := [row.config.get(field.name, "") for row in rows]))) > 1
    ]
    context = {"section": "runs", "runs": rows, "differences": table}
    return render(request, "training/compare.html", context)


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
