"""Tell open pages that a row changed. A hint may be lost: pages also poll, and re-read the row."""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from threading import Thread

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
    """Hand the hint to the loop and go on: a decision does not wait for its hints."""
    asyncio.run_coroutine_threadsafe(_publish(session_id, what), _loop())


async def _publish(session_id: int, what: str) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group(session_id), {"type": "hint", "changed": what})
    except Exception as error:  # whatever the layer raises: losing a hint costs latency only
        log.warning("hint %r for session %s was lost: %s", what, session_id, error)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return a loop in a thread of its own, which keeps its connection to the channel layer.

    A loop per hint, as async_to_sync makes outside a request, would connect anew each time.
    """
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="hints", daemon=True).start()
    return loop
