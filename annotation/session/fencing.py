"""The lock that every verb of a session takes first."""

from __future__ import annotations

from typing import Any

from annotation.errors import NotYours, StaleFence
from annotation.models import Session


def hold(session: Session, *, fence: int | None = None) -> Session:
    """Lock the session's row until the transaction ends and return it fresh.

    Raises StaleFence if the session changed hands after the caller learnt `fence`; None skips that
    for callers that are not a person's request.
    """
    row = (
        Session.objects.select_for_update(of=("self",))
        .select_related("task", "lease__sandbox", "deployment")
        .get(pk=session.pk)
    )
    if fence is not None and fence != row.fence:
        raise StaleFence(
            "this session was taken up elsewhere, or it expired: "
            "what you wrote is kept as a draft; reload the page"
        )
    return row


def keep_draft(session: Session, carried: dict[str, Any]) -> None:
    """Keep what a refused request carried; call it outside the transaction that was refused."""
    Session.objects.filter(pk=session.pk).update(draft=carried)


def active(session: Session) -> None:
    """Raise NotYours unless the session is under way."""
    if session.status != Session.Status.ACTIVE or session.outcome:
        state = "ending" if session.outcome else session.get_status_display()
        raise NotYours(f"this session is {state}, not active: reload the page")
