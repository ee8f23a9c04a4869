"""The workbench page, and its panel that follows the session."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from annotation import access
from annotation.hand import commands
from annotation.models import DecisionPoint, Proposal, Session, Step
from annotation.session import steps
from annotation.views.replay import replay

WORKBENCH = (
    Session.Status.PREPARING,
    Session.Status.ACTIVE,
    Session.Status.EXPIRED,
    Session.Status.FAILED,
)


@login_required
@require_GET
def workbench(request: HttpRequest, session_id: int) -> HttpResponse:
    """Show the author the workbench while the session lives, everybody else its replay."""
    session = access.session_for(request.user, session_id)
    skipped = session.status == Session.Status.EXPIRED and session.outcome
    if session.author_id != request.user.pk or session.status not in WORKBENCH or skipped:
        return replay(request, session)
    context = {
        "session": session,
        "task": session.task,
        "draft": draft_of(session),
        **panel_context(session),
    }
    return render(request, "annotation/workbench.html", context)


@require_GET
def panel(request: HttpRequest, session_id: int) -> HttpResponse:
    """Render what changes; 204 if the page has this version already (`?seen=`).

    401 for who is signed out: the page would put the form to sign in where its state belongs.
    """
    if not request.user.is_authenticated:
        return HttpResponse("signed out", status=401)
    session = access.own_session_for(request.user, session_id)
    context = panel_context(session)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return render(request, "annotation/_panel.html", {"session": session, **context})


def panel_context(session: Session) -> dict[str, Any]:
    """Return what the panel shows: the phase, the proposals, the steps so far."""
    done = list(session.steps.select_related("decision").order_by("index"))
    point = steps.current(session)
    missing = steps.missing_thoughts(session)
    phase = phase_of(session, point, done[-1] if done else None)
    parts = (
        phase, session.status, session.stage, session.fence, session.controller, len(done),
        done[-1].state if done else "", point.pk if point else "", point.status if point else "",
        point.attempts if point else "", session.lease_id, *(step.index for step in missing),
    )  # fmt: skip
    proposals = list(point.proposals.all()) if point and phase == "ready" else []
    return {
        "phase": phase,
        "point": point,
        "proposals": proposals,
        "steps": done,
        "proposal_records": [proposal_record(p) for p in proposals],
        "missing_records": [
            {"index": s.index, "command": commands.describe(s.action), "screenshot": s.screenshot}
            for s in missing
        ],
        "version": ".".join(str(part) for part in parts),
        "waited_s": round((timezone.now() - point.requested_at).total_seconds()) if point else 0,
        "frame": frame_of(session),
        "held_until": session.lease.hard_expires_at.timestamp() if session.lease else "",
    }


def proposal_record(proposal: Proposal) -> dict[str, Any]:
    """Return what the overlay and the editor need of a proposal."""
    return {
        "rank": proposal.rank,
        "thought": proposal.thought,
        "action": proposal.action,
        "command": commands.describe(proposal.action) if proposal.action else "",
    }


def phase_of(session: Session, point: DecisionPoint | None, last: Step | None) -> str:
    """Say in one word what the annotator can do now; the panel's templates are named by it."""
    if session.status != Session.Status.ACTIVE:
        return {
            Session.Status.PREPARING: "preparing",
            Session.Status.EXPIRED: "ended" if session.outcome else "expired",
            Session.Status.FAILED: "broken",
        }.get(Session.Status(session.status), "ended")
    if session.outcome:
        return "ending"
    if session.controller == Session.Controller.HUMAN:
        return "human"
    if last is not None and last.state == Step.State.CHOSEN:
        return "executing"
    if point is None or point.status in (DecisionPoint.Status.DECIDED, DecisionPoint.Status.STALE):
        return "idle"
    return {"requested": "waiting", "ready": "ready", "failed": "failed"}[point.status]


def draft_of(session: Session) -> dict[str, Any]:
    """Return what was being typed; what a refused decision carried is written as a command."""
    draft = dict(session.draft)
    if "action" in draft:
        draft["command"] = commands.describe(draft.pop("action"))
        draft["dirty"] = True
    return draft


def frame_of(session: Session) -> tuple[int, int]:
    """Return the width and height of the session's screen in pixels."""
    if session.lease is None:
        return (1280, 720)
    return (session.lease.sandbox.width, session.lease.sandbox.height)
