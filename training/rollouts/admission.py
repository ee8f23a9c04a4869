"""How many episodes may be begun now: pure functions of counters."""

from __future__ import annotations


def admitted(
    *,
    running: int,
    concurrency: int,
    accepted: int = 0,
    version: int = 0,
    batch: int = 1,
    staleness: int = -1,
) -> int:
    """Return how many more episodes may be begun, 0 or more.

    min(concurrency - running, (staleness + version + 1) * batch - (accepted + running)), where
    `version` counts the trainer's updates of `batch` episodes each, and `accepted` the finished
    episodes, trained on or not; a broken one is in neither and gives its place back (AReaL, arXiv
    2505.24298, section 5.1). `staleness` -1: no bound, for evaluations.

    It bounds how far episodes run ahead of the trainer. Where they end in the order in which they
    began, none is more than `staleness` updates old when the trainer takes it; one that outlives
    others may be older at its first steps, and its later ones are the newer versions'. Nothing waits
    for it and nothing is thrown away: each row says how stale it is, each step which version it is.
    """
    room = concurrency - running
    if staleness >= 0:
        room = min(room, (staleness + version + 1) * batch - (accepted + running))
    return max(room, 0)
