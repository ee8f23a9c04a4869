"""Pages of reward models: list, make, calibrate, look at what was judged wrongly, admit, withdraw."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from training import access
from training.errors import BadConfig, NameTaken, Refused
from training.models import Calibration, Episode, RewardModel
from training.rewards import calibrations
from training.rewards import reward_models as verbs
from training.rewards.forms import AdmitForm, CalibrateForm, RewardModelForm
from training.rewards.measures import cell, measure
from training.views.evaluations import ENOUGH

SHOWN = {
    "false_positive": "Called a success, is none",
    "false_negative": "Called a failure, is a success",
    "unreadable": "Unreadable",
    "abstained": "Abstained",
    "true_positive": "Rightly called a success",
    "true_negative": "Rightly called a failure",
}
"""What of a calibration can be browsed, the wrong ones first."""


@access.staff_only
@require_GET
def reward_models(request: HttpRequest) -> HttpResponse:
    rows = RewardModel.objects.select_related("deployment", "gated_by").order_by("-pk")
    listed = [(row, _newest(row), verbs.in_force(row)) for row in rows]
    context = {"section": "reward-models", "rows": listed}
    return render(request, "training/reward_models.html", context)


def _newest(row: RewardModel) -> dict[str, Any] | None:
    newest = row.calibrations.first()
    return {"row": newest, "found": measure(newest.answers)} if newest else None


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    form = RewardModelForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = verbs.create(by=request.user, **form.cleaned_data)  # type: ignore[arg-type]
        except BadConfig as error:
            for field, message in error.errors.items():
                form.add_error(field, message)
        except NameTaken as error:
            form.add_error("name", str(error))
        else:
            return redirect("training:reward-model", row.pk)
    context = {"section": "reward-models", "form": form}
    return render(request, "training/reward_model_new.html", context)


@access.staff_only
@require_GET
def reward_model(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.reward_model_for(request, pk)
    return _page(request, row, CalibrateForm(), AdmitForm())


@access.staff_only
@require_POST
def calibrate(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.reward_model_for(request, pk)
    form = CalibrateForm(request.POST)
    if form.is_valid():
        try:
            started = calibrations.start(row, by=request.user, **form.cleaned_data)  # type: ignore[arg-type]
        except Refused as error:
            form.add_error("size", str(error))
        else:
            return redirect("training:calibration", started.pk)
    return _page(request, row, form, AdmitForm())


@access.staff_only
@require_POST
def admit(request: HttpRequest, pk: int) -> HttpResponse:
    row = access.reward_model_for(request, pk)
    form = AdmitForm(request.POST)
    if form.is_valid():
        try:
            verbs.admit(row, precision=form.cleaned_data["precision"])
        except Refused as error:
            form.add_error("precision", str(error))
        else:
            messages.success(request, f"{row.name} may gate data now.")
            return redirect("training:reward-model", row.pk)
    return _page(request, row, CalibrateForm(), form)


@access.staff_only
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    row = verbs.withdraw(access.reward_model_for(request, pk))
    messages.success(request, f"{row.name} gates nothing any more.")
    return redirect("training:reward-model", row.pk)


def _page(
    request: HttpRequest, row: RewardModel, calibrate_form: Form, admit_form: Form
) -> HttpResponse:
    context = {
        "section": "reward-models",
        "row": row,
        "in_force": verbs.in_force(row),
        "members": row.members.order_by("name"),
        "calibrations": [(one, measure(one.answers)) for one in row.calibrations.all()[:20]],
        "calibrate_form": calibrate_form,
        "admit_form": admit_form,
    }
    return render(request, "training/reward_model.html", context)


@access.staff_only
@require_GET
def calibration(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one calibration; ?show= chooses which answers are listed, the false positives first."""
    row = access.calibration_for(request, pk)
    show = request.GET.get("show", "")
    if show not in SHOWN:
        show = next((name for name in SHOWN if _counts(row)[name]), "false_positive")
    chosen = [answer for answer in row.answers if cell(answer) == show]
    page = Paginator(chosen, 25).get_page(request.GET.get("page"))
    known = Episode.objects.in_bulk([answer["episode"] for answer in page])
    context = {
        "section": "reward-models",
        "show": show,
        "query": f"show={show}",
        "page": page,
        "answers": [(answer, known.get(answer["episode"])) for answer in page],
        **_panel(row),
    }
    return render(request, "training/reward_calibration.html", context)


@access.staff_only
@require_GET
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the measures of now; says with its status when there will be no others."""
    context = _panel(access.calibration_for(request, pk))
    status = 200 if context["live"] else ENOUGH
    return render(request, "training/_reward_panel.html", context, status=status)


def _panel(row: Calibration) -> dict[str, Any]:
    found = measure(row.answers)
    return {
        "row": row,
        "found": found,
        "judged": sum(found.counts.values()),
        "shown": [(name, label, found.counts[name]) for name, label in SHOWN.items()],
        "live": row.state in Calibration.LIVE,
    }


def _counts(row: Calibration) -> dict[str, int]:
    return dict(measure(row.answers).counts)


@access.staff_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    return _steer(request, pk, calibrations.cancel)


@access.staff_only
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    return _steer(request, pk, calibrations.resume)


def _steer(request: HttpRequest, pk: int, verb: Any) -> HttpResponse:
    row = access.calibration_for(request, pk)
    try:
        verb(row)
    except Refused as error:
        messages.error(request, str(error))
    return redirect("training:calibration", row.pk)
