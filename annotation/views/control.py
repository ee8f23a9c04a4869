"""Who holds the mouse, and how a session ends."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from annotation import access
from annotation.errors import BadInput, Refused
from annotation.hand import commands
from annotation.session import sessions, takeover
from annotation.views.answers import Body, conflict, integer, json_verb, text
from trajectory import Outcome


@json_verb
def take_over(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Give the author mouse and keyboard."""
    session = access.own_session_for(request.user, session_id)
    session = takeover.take_over(session, fence=integer(body, "fence"), by=request.user)
    return {"controller": session.controller, "fence": session.fence}


@json_verb
def hand_back(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Take them back; answer the steps that the hand did."""
    session = access.own_session_for(request.user, session_id)
    done = takeover.hand_back(session, fence=integer(body, "fence"), by=request.user)
    session.refresh_from_db()
    return {
        "controller": session.controller,
        "fence": session.fence,
        "steps": [{"index": s.index, "command": commands.describe(s.action)} for s in done],
    }


@json_verb
def finish(request: HttpRequest, body: Body, session_id: int) -> Body:
    """End the session: done (with an answer) or infeasible (with the reason)."""
    session = access.own_session_for(request.user, session_id)
    outcome = body.get("outcome")
    if outcome not in (Outcome.FINISHED, Outcome.FAILED):
        raise BadInput("outcome must be finished or failed")
    report = text(body, "report")
    if outcome == Outcome.FAILED and not report:
        raise BadInput("report: say why the task can't be done")
    sessions.finish(
        session,
        fence=integer(body, "fence"),
        by=request.user,
        outcome=Outcome(outcome),
        thought=text(body, "thought"),
        answer=text(body, "answer"),
        report=report,
    )
    return {}  # the page stays and shows the verifier's word


@json_verb
def skip(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Give the task back with a reason."""
    session = access.own_session_for(request.user, session_id)
    sessions.skip(
        session, fence=integer(body, "fence"), by=request.user, reason=_reason(body, "reason")
    )
    return {"next": "/queue/"}


@json_verb
def report(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Say that the task itself is broken."""
    session = access.own_session_for(request.user, session_id)
    sessions.report_broken(
        session, fence=integer(body, "fence"), by=request.user, report=_reason(body, "report")
    )
    return {"next": "/queue/"}


@login_required
@require_POST
def resume(request: HttpRequest, session_id: int) -> HttpResponse:
    """Take a live or expired session up again in this browser."""
    session = access.own_session_for(request.user, session_id)
    try:
        sessions.resume(session, by=request.user)
    except Refused as error:
        return conflict(request, error)
    return redirect("workbench", session.pk)


@login_required
@require_POST
def resubmit(request: HttpRequest, session_id: int) -> HttpResponse:
    """Send a returned session to review again."""
    session = access.own_session_for(request.user, session_id)
    try:
        sessions.resubmit(session, by=request.user)
    except Refused as error:
        return conflict(request, error)
    return redirect("queue")


def _reason(body: Body, name: str) -> str:
    reason = text(body, name, 500)
    if not reason:
        raise BadInput(f"{name}: say why")
    return reason
