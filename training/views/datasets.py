"""Pages of datasets: list, freeze with a preview, import, one dataset with what its rows look like."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agent.dialects import tools
from agent.models import Deployment
from blobs import BlobError
from training import access
from training.data import datasets as verbs
from training.data import general
from training.data.rows import LeftOut, PromptFormat, Row, rows
from training.data.selection import Preview
from training.data.selection import preview as count
from training.data.texts import texts
from training.errors import BadConfig, NameTaken, Refused
from training.forms.datasets import FiltersForm, FreezeForm, ImportForm
from training.models import Dataset
from training.runs.runs import kinds
from trajectory import dump_lines

SAMPLE_TRAJECTORIES = 3
SAMPLE_ROWS = 4
MAX_UNASKED = 30
"""How many episodes a reward model is asked about while somebody waits for the page."""


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
            _require_few(form)
            dataset = verbs.freeze(
                name=form.cleaned_data["name"],
                pool=form.cleaned_data["pool"],
                filters=form.filters(),
                by=request.user,  # type: ignore[arg-type]
            )
        except NameTaken as error:
            form.add_error("name", str(error))
        except BadConfig as error:
            for field, why in error.errors.items():
                form.add_error(field, why)
        except (Refused, BlobError) as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request, f"Froze {dataset.trajectories} trajectories as {dataset.name}."
            )
            return redirect("training:dataset", dataset.pk)
    context = {"section": "datasets", "form": form, "preview": _preview(FiltersForm(request.POST))}
    return render(request, "training/dataset_new.html", context)


@access.staff_only
@require_GET
def preview(request: HttpRequest) -> HttpResponse:
    """Return the counts for the filters typed so far, as a fragment."""
    context = {"preview": _preview(FiltersForm(request.GET))}
    return render(request, "training/_preview.html", context)


def _require_few(form: FreezeForm) -> None:
    """Refuse what would keep the page waiting for a reward model for minutes."""
    unasked = count(form.filters()).unasked if form.cleaned_data["judge"] else 0
    if unasked > MAX_UNASKED:
        raise Refused(
            f"{form.cleaned_data['judge']} has yet to judge {unasked} episodes, which takes longer "
            f"than a page may: run manage.py freeze {form.cleaned_data['name']} with these filters"
        )


def _preview(form: FiltersForm) -> Preview | None:
    return count(form.filters()) if form.is_valid() else None


@access.staff_only
def import_general(request: HttpRequest) -> HttpResponse:
    """Import general data; what is wrong with the file is said by its line."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            dataset = verbs.import_general(
                name=form.cleaned_data["name"],
                file=file.name,
                lines=file,
                by=request.user,  # type: ignore[arg-type]
            )
        except NameTaken as error:
            form.add_error("name", str(error))
        except Refused as error:
            form.add_error("file", str(error))
        else:
            messages.success(
                request, f"Imported {dataset.trajectories} conversations as {dataset.name}."
            )
            return redirect("training:dataset", dataset.pk)
    return render(request, "training/dataset_import.html", {"section": "datasets", "form": form})


@access.staff_only
@require_GET
def dataset(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.dataset_for(request, pk)
    entries = row.entries.select_related("session__task", "episode__rollout").order_by("line")
    form, source = _format(request)
    context = {
        "section": "datasets",
        "dataset": row,
        "filters": [
            f"{name} = {', '.join(value) if isinstance(value, list) else value}"
            for name, value in row.filters.items()
        ],
        "general": row.pool == Dataset.Pool.GENERAL,
        "trainable": row.pool in kinds() and row.erased_at is None,
        "page": Paginator(entries, 50).get_page(request.GET.get("page")),
        "sample": [],
        "form": form,
        "source": source,
        "mixed_into": [one.run for one in row.mixed_into.select_related("run").order_by("pk")],
    }
    try:
        if row.erased_at is None:
            context["sample"] = list(islice(_rows(row, form, SAMPLE_TRAJECTORIES), SAMPLE_ROWS))
    except BlobError as error:
        context["broken"] = str(error)
    return render(request, "training/dataset.html", context)


@access.staff_only
@require_POST
def refreeze(request: HttpRequest, pk: int) -> HttpResponse:
    """Freeze a fresh dataset from the filters of one that somebody's data was deleted from."""
    row = access.dataset_for(request, pk)
    try:
        fresh = verbs.refreeze(row, by=request.user)  # type: ignore[arg-type]
    except (Refused, BlobError) as error:
        messages.error(request, str(error))
        return redirect("training:dataset", row.pk)
    messages.success(request, f"Froze {fresh.trajectories} trajectories as {fresh.name}.")
    return redirect("training:dataset", fresh.pk)


@access.staff_only
@require_GET
def download(request: HttpRequest, pk: int, part: str) -> HttpResponse:
    """Return what was frozen, or the training rows made of it, as JSON lines."""
    row = access.dataset_for(request, pk)
    whole = "conversations" if row.pool == Dataset.Pool.GENERAL else "trajectories"
    if part not in (whole, "rows"):
        raise Http404(f"there are {whole}.jsonl and rows.jsonl")
    if row.erased_at is not None:
        messages.error(request, f"The file of {row.name} was deleted with somebody's data.")
        return redirect("training:dataset", row.pk)
    lines: Iterator[str]
    if part == "rows":
        lines = (found.to_line() for found in _rows(row, _format(request)[0]))
    elif part == "conversations":
        lines = (one.to_line() for one in verbs.conversations(row))
    else:
        lines = dump_lines(verbs.trajectories(row))
    name = f"{row.name}-{part}-{row.sha256[:12]}.jsonl"
    return StreamingHttpResponse(
        lines,
        content_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _rows(row: Dataset, form: PromptFormat, first: int | None = None) -> Iterator[Row]:
    found: Iterator[Any]
    if row.pool == Dataset.Pool.GENERAL:
        found = general.rows(islice(verbs.conversations(row), first), name=row.name)
    else:
        some = islice(verbs.trajectories(row), first)
        found = texts(some, form) if row.pool == Dataset.Pool.CT else rows(some, form)
    return (one for one in found if not isinstance(one, LeftOut))


def _format(request: HttpRequest) -> tuple[PromptFormat, str]:
    """Return the prompt format of the annotators' partner, and its name."""
    partner = Deployment.objects.filter(is_partner=True).first()
    if partner is None or partner.dialect in tools.NAMES:  # nobody trains on tool calls
        return PromptFormat(dialect="element", observation="elements"), "element numbers"
    return PromptFormat.of_deployment(partner), str(partner)
