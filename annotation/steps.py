"""Verbs of DecisionPoint and Step."""

from __future__ import annotations

from django.contrib.auth.models import User

from annotation.models import DecisionPoint, Session, Step


def current(session: Session) -> DecisionPoint | None:
    """Return the newest decision point; its status says what the page should show."""
    raise NotImplementedError


def request_proposals(session: Session, *, fence: int, hint: str = "") -> DecisionPoint:
    """Ask the policy (again), with a hint for it if given; raises StaleFence, Busy."""
    raise NotImplementedError


def decide(
    session: Session,
    *,
    fence: int,
    decision_point: DecisionPoint,
    by: User,
    proposal_rank: int | None,
    thought: str,
    action: dict[str, object],
    seen: str,
    active_ms: int = 0,
) -> Step:
    """Choose what to do now and do it. `seen` is the sha256 of the picture the page showed.

    `proposal_rank` None: neither thought nor action came from a proposal (override).
    Returns the step as soon as it is written down (state `chosen`); the page hears "step" and then
    "proposals". Raises StaleFence, StaleScreen, AlreadyDecided, Busy, BadInput.
    """
    raise NotImplementedError


def missing_thoughts(session: Session) -> list[Step]:
    """Return the steps done by hand that still need a thought."""
    raise NotImplementedError


def set_thought(step: Step, *, by: User, thought: str) -> Step:
    """Write the author's thought of a step (live, expired or returned session)."""
    raise NotImplementedError
