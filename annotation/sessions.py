"""Verbs of Session."""

from __future__ import annotations

from django.contrib.auth.models import User
from trajectory import Outcome

from annotation.models import Session


def start(*, user: User) -> Session:
    """Return the user's live session, or claim a task and open one; raises NoTask."""
    raise NotImplementedError


def heartbeat(session: Session, *, fence: int) -> Session:
    """Say that the author is still there (every 20 s); raises StaleFence."""
    raise NotImplementedError


def resume(session: Session, *, by: User) -> Session:
    """Take a live or expired session up again; `session.fence` is new. Raises Refused."""
    raise NotImplementedError


def save_draft(session: Session, *, fence: int, draft: dict[str, object]) -> Session:
    """Keep what is being typed; an old fence is refused (StaleFence) but its text is kept."""
    raise NotImplementedError


def finish(
    session: Session,
    *,
    fence: int,
    by: User,
    outcome: Outcome,
    thought: str = "",
    answer: str = "",
    report: str = "",
) -> Session:
    """End the session: FINISHED (answer), FAILED = infeasible (report says why).

    Raises StaleFence, Busy, MissingThoughts. Verifying goes on in the background; the page sees
    status `submitted` with `reward` and `verdict_detail`.
    """
    raise NotImplementedError


def skip(session: Session, *, fence: int, by: User, reason: str) -> Session:
    """Give the task back unfinished; it is not offered to the author again."""
    raise NotImplementedError


def report_broken(session: Session, *, fence: int, by: User, report: str) -> Session:
    """Say that the task itself is broken: the session ends, the task is retired."""
    raise NotImplementedError


def resubmit(session: Session, *, by: User) -> Session:
    """Send a returned session to review again."""
    raise NotImplementedError
