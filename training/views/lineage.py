"""The page of a lineage: the picture, the same in words, and as JSON."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from training import access
from training.lineage import Graph, Key, draw, graph_of


@access.staff_only
@require_GET
def lineage(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    name, section = _asked(request, kind, pk)
    context = {"section": section, "name": name, **pictured(graph_of(Key(kind, pk)))}
    return render(request, "training/lineage.html", context)


@access.staff_only
@require_GET
def export(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    name, _ = _asked(request, kind, pk)
    graph = graph_of(Key(kind, pk), limit=None)
    headers = {"Content-Disposition": f'attachment; filename="lineage-{name}.json"'}
    return JsonResponse(graph.to_json(), headers=headers, json_dumps_params={"indent": 2})


def pictured(graph: Graph) -> dict[str, Any]:
    """Return what the fragment of a lineage needs."""
    return {
        "graph": graph,
        "picture": draw(graph),
        "json": reverse("training:lineage-json", args=[graph.focus.kind, graph.focus.pk]),
    }


def _asked(request: HttpRequest, kind: str, pk: int) -> tuple[str, str]:
    """Return the name of what is asked about and its section; raises PermissionDenied or Http404."""
    match kind:
        case "checkpoint":
            return access.checkpoint_for(request, pk).version, "checkpoints"
        case "dataset":
            return access.dataset_for(request, pk).name, "datasets"
        case "session":
            return f"session-{access.session_for(request, pk).pk}", "datasets"
    raise Http404("there are lineages of a checkpoint, a dataset and a session")
