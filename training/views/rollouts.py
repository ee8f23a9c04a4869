"""Pages of rollouts: list, start, one live, one episode step by step."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agent.models import Deployment
from annotation.session import pictures
from blobs import BlobError
from training import access
from training.errors import BadConfig, NameTaken, WrongState
from training.forms.rollouts import RolloutForm
from training.models import Episode, Rollout
from training.rollouts import choosing, figures, record, rollouts
from training.rollouts.config import FIELDS
from trajectory import FormatError, action_to_dict

STOP_POLLING = 286  # what htmx takes for: nothing more will come
SHOWN = 15
VERBS = {
    "pause": rollouts.pause, "resume": rollouts.resume, "drain": rollouts.drain,
    "cancel": rollouts.cancel,
}  # fmt: skip


@access.staff_only
@require_GET
def listing(request: HttpRequest) -> HttpResponse:
    ended = ~Q(episodes__state__in=(Episode.State.WAITING, Episode.State.RUNNING))
    rows = Rollout.objects.select_related("deployment", "created_by").order_by("-pk")
    rows = rows.annotate(ended_episodes=Count("episodes", filter=ended))
    page = Paginator(rows, 50).get_page(request.GET.get("page"))
    return render(request, "training/rollouts.html", {"section": "rollouts", "page": page})


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    """Start a rollout; the form starts from ?deployment= and ?clone=ROLLOUT."""
    form = RolloutForm(request.POST or None, initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        try:
            row = rollouts.create(**form.wanted(), by=request.user)  # type: ignore[arg-type]
        except BadConfig as error:
            for field, message in error.errors.items():
                form.add_error(field if field in form.fields else None, message)
        except NameTaken as error:
            form.add_error("name", str(error))
        else:
            return redirect("training:rollout", row.pk)
    context = {"section": "rollouts", "form": form, "families": choosing.sizes()}
    return render(request, "training/rollout_new.html", context)


def _initial(request: HttpRequest) -> dict[str, Any]:
    asked = request.GET
    partner = Deployment.objects.order_by("-is_partner", "name").first()
    initial: dict[str, Any] = {"deployment": partner.pk if partner else None}
    if asked.get("clone", "").isdecimal():
        row = access.rollout_for(request, int(asked["clone"]))
        names = row.episodes.order_by().values_list("family", "task").distinct()
        initial |= row.config | {
            "deployment": row.deployment_id,
            "tasks": "\n".join(f"{family}/{task}" for family, task in names),
        }
    if asked.get("deployment", "").isdecimal():
        initial["deployment"] = int(asked["deployment"])
    return initial


@access.staff_only
@require_GET
def rollout(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.rollout_for(request, pk)
    return render(request, "training/rollout.html", {"section": "rollouts", **_panel(row)})


@access.staff_only
@require_GET
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the figures and the buttons; asked for again and again until the rollout has ended."""
    row = access.rollout_for(request, pk)
    status = STOP_POLLING if row.ended else 200
    context = {**_panel(row), "oob": True}
    return render(request, "training/_rollout_panel.html", context, status=status)


def _panel(row: Rollout) -> dict[str, Any]:
    state = Rollout.State
    recent = row.episodes.exclude(state=Episode.State.WAITING).order_by("-finished_at", "-pk")
    running = row.episodes.filter(state=Episode.State.RUNNING).order_by("started_at")
    return {
        "rollout": row,
        "figures": figures.of(row),
        "config": [(f.metadata["label"], row.config.get(f.name)) for f in FIELDS],
        "recent": recent.exclude(state=Episode.State.RUNNING)[:SHOWN],
        "running": running[:SHOWN],
        "can": {
            "pause": row.state in (state.QUEUED, state.RUNNING),
            "resume": row.state in (state.PAUSED, state.DRAINING),
            "drain": row.state in (state.QUEUED, state.RUNNING, state.PAUSED),
            "cancel": not row.ended,
        },
    }


@access.staff_only
@require_GET
def series(request: HttpRequest, pk: int) -> JsonResponse:
    """Return what the plots show."""
    row = access.rollout_for(request, pk)
    return JsonResponse({"points": figures.series(row), "ended": row.ended})


@access.staff_only
@require_POST
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Pause, resume, drain or cancel."""
    row = access.rollout_for(request, pk)
    if verb not in VERBS:
        raise Http404
    try:
        VERBS[verb](row)
    except WrongState as error:
        messages.error(request, str(error))
    return redirect("training:rollout", row.pk)


@access.staff_only
@require_GET
def rollout_episodes(request: HttpRequest, pk: int) -> HttpResponse:
    """List the episodes; ?state=, ?family= and ?reward=full|none narrow it."""
    row = access.rollout_for(request, pk)
    rows = row.episodes.order_by("pk")
    asked = {name: request.GET.get(name, "") for name in ("state", "family", "reward")}
    if asked["state"] in Episode.State.values:
        rows = rows.filter(state=asked["state"])
    if asked["family"]:
        rows = rows.filter(family=asked["family"])
    if asked["reward"] == "full":
        rows = rows.filter(reward__gte=1)
    elif asked["reward"] == "less":
        rows = rows.filter(reward__lt=1)
    context = {
        "section": "rollouts", "rollout": row, "asked": asked, "states": Episode.State.values,
        "families": row.episodes.order_by("family").values_list("family", flat=True).distinct(),
        "page": Paginator(rows, 100).get_page(request.GET.get("page")),
        "query": "&".join(f"{k}={v}" for k, v in asked.items() if v),
    }  # fmt: skip
    return render(request, "training/rollout_episodes.html", context)


@access.staff_only
@require_GET
def episode(request: HttpRequest, pk: int) -> HttpResponse:
    """Show an episode step by step, or how far it is."""
    row = access.episode_for(request, pk)
    broken, kept = "", None
    try:
        kept = record.read(row, pictures.store())
    except (BlobError, FormatError) as error:
        broken = str(error)
    steps = kept.steps if kept else ()
    neighbours = row.rollout.episodes.exclude(trajectory="")
    context = {
        "section": "rollouts",
        "episode": row,
        "trajectory": kept,
        "broken": broken,
        "no_picture": record.NO_PICTURE,
        "steps": [{"step": step, "action": action_to_dict(step.action)} for step in steps],
        "action_records": {step.index: action_to_dict(step.action) for step in steps},
        "previous": neighbours.filter(pk__lt=row.pk).order_by("-pk").first(),
        "next": neighbours.filter(pk__gt=row.pk).order_by("pk").first(),
    }
    return render(request, "training/rollout_episode.html", context)


@access.staff_only
@require_GET
def picture(request: HttpRequest, sha: str) -> HttpResponse:
    """Serve a screenshot of an episode; a hash never changes its picture."""
    try:
        png = pictures.read(sha)
    except BlobError as error:
        raise Http404(str(error)) from error
    if not png.startswith(b"\x89PNG"):
        raise Http404("no such picture")
    response = HttpResponse(png, content_type="image/png")
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response
