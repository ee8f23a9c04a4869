"""Pages of checkpoints: list, one with its lineage, promotion and its way back."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from agent.models import Deployment
from training import access
from training.errors import Refused
from training.forms.promotion import PromoteForm
from training.lineage import Key, graph_of
from training.models import Checkpoint, Promotion
from training.views.lineage import pictured
from training.weights import promotions as verbs


@access.staff_only
@require_GET
def checkpoints(request: HttpRequest) -> HttpResponse:
    rows = Checkpoint.objects.select_related("run__dataset", "parent").order_by("-pk")
    context = {
        "section": "checkpoints",
        "page": Paginator(rows, 50).get_page(request.GET.get("page")),
        "serving": set(Deployment.objects.values_list("version", flat=True)),
    }
    return render(request, "training/checkpoints.html", context)


@access.staff_only
@require_GET
def checkpoint(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.checkpoint_for(request, pk)
    context = {
        "section": "checkpoints",
        "checkpoint": row,
        **pictured(graph_of(Key("checkpoint", row.pk))),
        "serving": Deployment.objects.filter(version=row.version),
        "children": row.children.order_by("-pk"),
    }
    return render(request, "training/checkpoint.html", context)


@access.staff_only
def promote(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask which deployment, then put the checkpoint behind it."""
    row = access.checkpoint_for(request, pk)
    form = PromoteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        deployment = form.cleaned_data["deployment"]
        try:
            verbs.promote(row, deployment=deployment, by=request.user)  # type: ignore[arg-type]
        except Refused as error:
            form.add_error("deployment", str(error))
        else:
            messages.success(request, f"{deployment.name} now serves {row.version}.")
            return redirect("training:promotions")
    context = {
        "section": "checkpoints",
        "checkpoint": row,
        "form": form,
        "deployments": form.fields["deployment"].queryset,  # type: ignore[attr-defined]
    }
    return render(request, "training/promote.html", context)


@access.staff_only
@require_GET
def promotions(request: HttpRequest) -> HttpResponse:
    rows = Promotion.objects.select_related("checkpoint", "deployment", "previous", "by")
    newest = [
        promotion
        for deployment in Deployment.objects.filter(kind=Deployment.Kind.LOCAL).order_by("name")
        if (promotion := rows.filter(deployment=deployment).order_by("-pk").first())
    ]
    context = {
        "section": "promotions",
        "newest": newest,
        "page": Paginator(rows.order_by("-pk"), 50).get_page(request.GET.get("page")),
    }
    return render(request, "training/promotions.html", context)


@access.staff_only
def roll_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask first, then put back what the deployment served before."""
    deployment = access.deployment_for(request, pk)
    newest = Promotion.objects.filter(deployment=deployment).order_by("-pk").first()
    if request.method == "POST":
        try:
            back = verbs.roll_back(deployment, by=request.user)  # type: ignore[arg-type]
        except Refused as error:
            messages.error(request, str(error))
        else:
            messages.success(request, f"{deployment.name} serves {back.checkpoint} again.")
        return redirect("training:promotions")
    context = {"section": "promotions", "deployment": deployment, "newest": newest}
    return render(request, "training/roll_back.html", context)
