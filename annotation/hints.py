"""Tell open pages that a row changed. A hint may be lost: pages also poll, and re-read the row."""

from __future__ import annotations

import logging

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = logging.getLogger(__name__)


def group(session_id: int) -> str:
    """Return the name of the group that the pages of one session listen to."""
    return f"session.{session_id}"


def changed(session_id: int, what: str) -> None:
    """Send {"changed": what} to the session's pages once the transaction has committed.

    `what` is "session", "proposals", "step", "control" or "review".
    """
    transaction.on_commit(lambda: _send(session_id, what), robust=True)


def _send(session_id: int, what: str) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    message = {"type": "hint", "changed": what}
    try:
        async_to_sync(layer.group_send)(group(session_id), message)
    except Exception as error:  # whatever the layer raises: losing a hint costs latency only
        log.warning("hint %r for session %s was lost: %s", what, session_id, error)
