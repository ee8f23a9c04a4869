"""Pages of datasets: list, freeze with a preview, one dataset with what its rows look like."""

from __future__ import annotations

from itertools import islice

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from agent.models import Deployment
from blobs import BlobError
from training import access
from training import datasets as verbs
from training.errors import NameTaken, Refused
from training.forms import FiltersForm, FreezeForm
from training.models import Dataset
from training.rows import PromptFormat, Row, rows
from training.runs import kinds
from training.selection import Preview
from training.selection import preview as count
from trajectory import dump_lines

SAMPLE_TRAJECTORIES = 3
SAMPLE_ROWS = 4


@access.staff_only
@require_GET
def datasets(request: HttpRequest) -> HttpResponse:
    page = Paginator(Dataset.objects.select_related("created_by").order_by("-pk"), 50)
    context = {"section": "datasets", "page": page.get_page(request.GET.get("page"))}
    return render(request, "training/datasets.html", context)


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    """Freeze a dataset; what was typed stays where something is wrong with it."""
    form = FreezeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            dataset = verbs.freeze(
                name=form.cleaned_data["name"],
                pool=form.cleaned_data["pool"],
                filters=form.filters(),
                by=request.user,  # type: ignore[arg-type]
            )
        except NameTaken as error:
            form.add_error("name", str(error))
        except Refused as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"Froze {dataset.trajectories} sessions as {dataset.name}.")
            return redirect("training:dataset", dataset.pk)
    context = {"section": "datasets", "form": form, "preview": _preview(FiltersForm(request.POST))}
    return render(request, "training/dataset_new.html", context)


@access.staff_only
@require_GET
def preview(request: HttpRequest) -> HttpResponse:
    """Return the counts for the filters typed so far, as a fragment."""
    context = {"preview": _preview(FiltersForm(request.GET))}
    return render(request, "training/_preview.html", context)


def _preview(form: FiltersForm) -> Preview | None:
    return count(form.filters()) if form.is_valid() else None


@access.staff_only
@require_GET
def dataset(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.dataset_for(request, pk)
    entries = row.entries.select_related("session__task").order_by("line")
    form, source = _format(request)
    context = {
        "section": "datasets",
        "dataset": row,
        "trainable": row.pool in kinds(),
        "page": Paginator(entries, 50).get_page(request.GET.get("page")),
        "sample": [],
        "form": form,
        "source": source,
    }
    try:
        some = islice(verbs.trajectories(row), SAMPLE_TRAJECTORIES)
        found = rows(some, form)
        context["sample"] = list(islice((r for r in found if isinstance(r, Row)), SAMPLE_ROWS))
    except BlobError as error:
        context["broken"] = str(error)
    return render(request, "training/dataset.html", context)


@access.staff_only
@require_GET
def download(request: HttpRequest, pk: int, part: str) -> StreamingHttpResponse:
    """Return the frozen trajectories, or the training rows made of them, as JSON lines."""
    row = access.dataset_for(request, pk)
    if part == "trajectories":
        lines = dump_lines(verbs.trajectories(row))
    elif part == "rows":
        form, _ = _format(request)
        found = rows(verbs.trajectories(row), form)
        lines = (r.to_line() for r in found if isinstance(r, Row))
    else:
        raise Http404("there are trajectories.jsonl and rows.jsonl")
    name = f"{row.name}-{part}-{row.sha256[:12]}.jsonl"
    return StreamingHttpResponse(
        lines,
        content_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _format(request: HttpRequest) -> tuple[PromptFormat, str]:
    """Return the prompt format of the annotators' partner, and its name."""
    partner = Deployment.objects.filter(is_partner=True).first()
    if partner is None:
        return PromptFormat(dialect="element", observation="elements"), "element numbers"
    return PromptFormat.of_deployment(partner), str(partner)
