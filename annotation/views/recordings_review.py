"""The reviewers' pages: what waits, and one recording with its frames, actions, words and thoughts."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access
from annotation.errors import Refused
from annotation.recordings import reviewing
from annotation.recordings.reviewing import Verdict
from annotation.views import recordings_steps as steps
from annotation.views.answers import conflict, members


@members(access.is_reviewer)
@require_GET
def waiting(request: HttpRequest) -> HttpResponse:
    rows = access.recordings_to_judge(request.user).select_related("task")[:100]
    return render(request, "recordings/waiting.html", {"recordings": rows})


@login_required
@require_http_methods(["GET", "POST"])
def review(request: HttpRequest, name: str) -> HttpResponse:
    """Show a recording, or take this reviewer's verdict with the fixes in the form."""
    rows = access.recordings_to_judge(request.user).filter(name=name)
    row = rows.select_related("task").first()
    if row is None:
        raise access.Denied("no such recording waits for you")
    made = steps.corrections(request.POST, row)
    verdict = request.POST.get("verdict", "")
    if request.method == "POST":
        made.errors |= _wrong(verdict, made.reasons)
        if not made.errors:
            try:
                done = reviewing.judge(
                    row,
                    reviewer=request.user,
                    verdict=verdict,
                    reasons=made.reasons,
                    fixes=made.fixes,
                )
            except Refused as error:
                return conflict(request, error)
            messages.success(request, f"Noted: it is {done.get_status_display()}.")
            return redirect("recording-reviews")
    values = {"recording": row, "editable": True, "judging": True, **steps.shown(row, made)}
    values |= {"errors": made.errors, "reasons": made.reasons}
    return render(request, "recordings/review.html", values, status=400 if made.errors else 200)


def _wrong(verdict: str, reasons: str) -> dict[str, str]:
    """Return what is wrong with the verdict itself, by field."""
    if verdict not in Verdict.values:
        return {"verdict": "choose a verdict"}
    if verdict != Verdict.ACCEPTED and not reasons:
        return {"reasons": "say why, so that the contributor can learn from it"}
    return {}
