"""Pages of the flywheel: iterations, start, one live."""

from __future__ import annotations

from typing import Any

import yaml
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agent.models import Deployment
from training import access
from training.errors import BadConfig, NameTaken, Refused
from training.evaluations import suites
from training.iterations import config, figures, iterations
from training.iterations.forms import IterationForm
from training.models import Iteration

STOP_POLLING = 286  # what htmx takes for: nothing more will come
VERBS = {
    "pause": iterations.pause, "resume": iterations.resume, "retry": iterations.retry,
    "cancel": iterations.cancel,
}  # fmt: skip


@access.staff_only
@require_GET
def listing(request: HttpRequest) -> HttpResponse:
    rows = Iteration.objects.select_related(
        "policy", "candidate", "sft_dataset", "ct_dataset", "deployment"
    ).order_by("-pk")
    page = Paginator(rows, 50).get_page(request.GET.get("page"))
    newest = rows.first()
    chain = figures.chain_of(newest) if newest else []
    context = {
        "section": "iterations",
        "page": page,
        "rows": [(row, figures.numbers(row)) for row in page],
        "plot": figures.plot(chain),
    }
    return render(request, "training/iterations.html", context)


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    """Start iterations; the form starts from ?clone=ITERATION."""
    form = IterationForm(request.POST or None, initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            row = iterations.begin(
                deployment=values["deployment"], config=form.config(), base=values["base"],
                server=values["server"], name=values["name"], count=values["count"],
                by=request.user,  # type: ignore[arg-type]
            )  # fmt: skip
        except BadConfig as error:
            for field, message in error.errors.items():
                form.add_error(field if field in form.fields else None, message)
        except NameTaken as error:
            form.add_error("name", str(error))
        else:
            return redirect("training:iteration", row.pk)
    context = {
        "section": "iterations", "form": form, "suites": suites.titles(), "asks": _asks(form),
        "deployments": Deployment.objects.filter(kind=Deployment.Kind.LOCAL).exists(),
    }  # fmt: skip
    return render(request, "training/iteration_new.html", context)


def _initial(request: HttpRequest) -> dict[str, Any]:
    asked = request.GET.get("clone", "")
    if not asked.isdecimal():
        return {}
    row = access.iteration_for(request, int(asked))
    return row.config | {
        "deployment": row.deployment_id,
        "base": row.base_id,
        "server": None if row.own_server else row.server_id,
    }


def _asks(form: IterationForm) -> str:
    """Say what the form as it stands asks for, "" where it can't be read."""
    try:
        found = config.read({one.name: form[one.name].value() for one in config.FIELDS})
        tasks, suite = len(found.wanted), suites.load(found.suite)
    except Refused:
        return ""
    collected = tasks * found.seeds * found.samples
    seeds = len(suites.seeds(found.evaluation_seeds))
    evaluated = len(suite.tasks) * seeds * found.repeats
    return (
        f"{tasks} tasks × {found.seeds} seeds × {found.samples} samples = {collected} episodes to "
        f"collect, and {len(suite.tasks)} tasks × {seeds} seeds = {evaluated} in each of the two "
        "evaluations."
    )


@access.staff_only
@require_GET
def iteration(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.iteration_for(request, pk)
    return render(request, "training/iteration.html", {"section": "iterations", **_panel(row)})


@access.staff_only
@require_GET
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the loop, the phases and the buttons; asked for until the iteration has ended."""
    row = access.iteration_for(request, pk)
    context = {**_panel(row), "oob": True}
    status = STOP_POLLING if row.ended else 200
    return render(request, "training/_iteration_panel.html", context, status=status)


def _panel(row: Iteration) -> dict[str, Any]:
    state = Iteration.State
    following = Iteration.objects.filter(previous=row).first()
    return {
        "iteration": row,
        "following": following,
        "numbers": figures.numbers(row),
        "loop": figures.loop(row),
        "phases": figures.phases(row),
        "plot": figures.plot(figures.chain_of(row)),
        "config": [(one.metadata["label"], row.config.get(one.name)) for one in config.FIELDS],
        "can": {
            "pause": row.state == state.RUNNING,
            "resume": row.state == state.PAUSED,
            "retry": row.state == state.FAILED and following is None,
            "cancel": row.state in (*Iteration.LIVE, state.FAILED),
            "repeat": following is None,
        },
    }


@access.staff_only
@require_GET
def export(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the configuration as a file for `manage.py iterate --config`."""
    row = access.iteration_for(request, pk)
    text = yaml.safe_dump(row.config, sort_keys=False, allow_unicode=True)
    headers = {"Content-Disposition": f'attachment; filename="{row.name}.yaml"'}
    return HttpResponse(text, content_type="application/yaml", headers=headers)


@access.staff_only
@require_POST
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Pause, resume, retry, cancel, or repeat ?count= times."""
    row = access.iteration_for(request, pk)
    if verb not in {*VERBS, "repeat"}:
        raise Http404
    try:
        if verb == "repeat":
            count = request.POST.get("count", "1")
            if not count.isdecimal():
                raise BadConfig({"count": f"{count!r} is not a whole number"})
            row = iterations.repeat(row, count=int(count), by=request.user)  # type: ignore[arg-type]
        else:
            VERBS[verb](row)
    except Refused as error:
        messages.error(request, str(error))
    return redirect("training:iteration", row.pk)
