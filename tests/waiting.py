"""Wait for what another process or thread does: on a condition, with a deadline, by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(probe: Callable[[], T], what: str = "it", *, deadline_s: float = 60.0) -> T:
    """Return the first truthy answer of `probe`; fail naming `what` if none comes."""
    end = time.monotonic() + deadline_s
    pause = 0.01
    while not (answer := probe()):
        assert time.monotonic() < end, f"waited {deadline_s:g} s for {what}"
        time.sleep(pause)
        pause = min(pause * 1.3, 0.1)  # what takes long is not asked all the time
    return answer
