"""What an annotator does with the model's proposals, keystroke by keystroke."""

from __future__ import annotations

from django.http import HttpRequest

from annotation import access
from annotation.errors import BadInput
from annotation.hand import commands
from annotation.models import DecisionPoint, Session, Step
from annotation.session import sessions, steps
from annotation.views.answers import Body, integer, json_verb, text
from annotation.views.workbench import frame_of
from trajectory import action_to_dict


@json_verb
def decide(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Do a proposal as it is (no `thought`, no `command` in the body), or what was typed."""
    session = access.own_session_for(request.user, session_id)
    point = _point(session, integer(body, "decision_point"))
    rank = None if body.get("proposal_rank") is None else integer(body, "proposal_rank")
    proposal = point.proposals.filter(rank=rank).first() if rank is not None else None
    if rank is not None and proposal is None:
        raise BadInput(f"proposal_rank: there is no proposal {rank}")
    if "command" in body:
        action = commands.parse(text(body, "command"), frame=frame_of(session))
        record = action_to_dict(action)
    elif proposal is None or proposal.action is None:
        raise BadInput("command: write an action first")
    else:
        record = proposal.action
    thought = text(body, "thought") if "thought" in body or proposal is None else proposal.thought
    step = steps.decide(
        session,
        fence=integer(body, "fence"),
        decision_point=point,
        by=request.user,
        proposal_rank=rank,
        thought=thought,
        action=record,
        seen=text(body, "seen", 64),
        active_ms=integer(body, "active_ms", 0),
    )
    return {"step": step.index}


@json_verb
def propose(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Ask the model again, with a hint for it if one was typed."""
    session = access.own_session_for(request.user, session_id)
    point = steps.request_proposals(
        session, fence=integer(body, "fence"), hint=text(body, "hint", 500)
    )
    return {"decision_point": point.pk}


@json_verb
def thought(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Write the author's thought of a step that a hand did."""
    session = access.own_session_for(request.user, session_id)
    step = Step.objects.filter(session=session, index=integer(body, "step")).first()
    if step is None:
        raise BadInput(f"step: there is no step {body['step']}")
    steps.set_thought(step, by=request.user, thought=text(body, "thought"))
    return {"missing": [step.index for step in steps.missing_thoughts(session)]}


@json_verb
def draft(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Keep what is being typed."""
    session = access.own_session_for(request.user, session_id)
    value = body.get("draft")
    if not isinstance(value, dict) or len(request.body) > 100_000:
        raise BadInput("draft must be an object of at most 100 kB")
    sessions.save_draft(session, fence=integer(body, "fence"), draft=value)
    return {}


@json_verb
def heartbeat(request: HttpRequest, body: Body, session_id: int) -> Body:
    """Say that the author is still there; answer how long the session is held."""
    session = access.own_session_for(request.user, session_id)
    session = sessions.heartbeat(session, fence=integer(body, "fence"))
    return {
        "status": session.status,
        "controller": session.controller,
        "fence": session.fence,
        "expires_at": session.expires_at.timestamp(),
    }


def _point(session: Session, pk: int) -> DecisionPoint:
    point = session.decision_points.filter(pk=pk).first()
    if point is None:
        raise BadInput("decision_point: it is not one of this session")
    return point
