"""Run a verb right after the commit, in a thread of this process.

A queue would add its own delay between a decision and the next proposal. Nothing depends on the
thread: the row says what is left to do, and `annotation.reaper` finds it if this process dies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import close_old_connections, transaction

log = logging.getLogger(__name__)

_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="annotation")


def soon(verb: Callable[[int], object], row_id: int) -> None:
    """Call `verb(row_id)` after the commit without waiting for it; it may run twice or never."""
    transaction.on_commit(lambda: _threads.submit(_run, verb, row_id), robust=True)


def _run(verb: Callable[[int], object], row_id: int) -> None:
    close_old_connections()
    try:
        verb(row_id)
    except Exception:  # the reaper tries again; here is nobody to tell
        log.exception("%s(%s) failed in the background", verb.__qualname__, row_id)
    finally:
        close_old_connections()
