"""Which action is meant by an utterance: by time and by content, solved for the whole recording. Pure.

People think aloud before an action, during it and after it, and in the order of what they do. Every
pair of utterance and action has a cost; the cheapest sequence in which later utterances mean later
actions (one step back is dear, more is dearer still) is found by dynamic programming, and how sure a
pair is by the sums over all sequences (`chain`).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from annotation.recordings.acts import Act, Pair, Spoken
from annotation.recordings.chain import solved
from annotation.recordings.content_fit import Content

REACH_S = 40.0  # further away than this nobody means an action
BEFORE_S, AFTER_S = 4.0, 1.6  # time in which a pair gets dearer by one
AFTER = 0.7  # what speaking after the action costs at once
OTHERS = 0.9  # for every other action between the two
NEAR = 100  # actions on each side of an utterance that it may mean; people do fewer in REACH_S


def align(said: Sequence[Spoken], acts: Sequence[Act]) -> list[Pair]:
    """Return one pair per utterance; both lists are in order of time, and so are their times."""
    if not acts:
        return [Pair(None, 0.0) for _ in said]
    content = Content(acts)
    starts = [act.began for act in acts]
    found: list[Pair] = [Pair(None, 0.0)] * len(said)
    chain: list[int] = []

    def rows() -> Iterator[dict[int, float]]:
        # Utterances that lie near no action are left out; the others are a chain.
        for at, one in enumerate(said):
            if row := _costs(one, acts, starts, content):
                chain.append(at)
                yield row

    for number, (act, fit) in enumerate(solved(rows())):
        found[chain[number]] = Pair(act, fit)
    return found


def _costs(
    said: Spoken, acts: Sequence[Act], starts: Sequence[float], content: Content
) -> dict[int, float]:
    """Return what it costs that the utterance means each action within reach."""
    middle = bisect.bisect_left(starts, said.began)
    low = max(bisect.bisect_left(starts, said.began - REACH_S - 30.0), middle - NEAR)
    high = min(bisect.bisect_right(starts, said.ended + REACH_S), middle + NEAR)
    near = [
        at
        for at in range(low, high)
        if acts[at].ended >= said.began - REACH_S and acts[at].began <= said.ended + REACH_S
    ]
    found = {}
    for at in near:
        act = acts[at]
        before, after = act.began - said.ended, said.began - act.ended
        if before >= 0:
            cost, side = before / BEFORE_S, -1
        elif after >= 0:
            cost, side = AFTER + after / AFTER_S, 1
        else:
            # Said while it was done: the earlier it began, the more it was a plan.
            cost, side = max(0.0, (said.began - act.began) / 8.0), 0
        cost += OTHERS * _between(said, at, acts, side)
        found[at] = cost - content.worth(said.text, at, side)
    return found


def _between(said: Spoken, at: int, acts: Sequence[Act], side: int) -> int:
    """Count the actions that lie whole between the utterance and the one that it may mean."""
    count, step = 0, side
    other = at + step if step else at
    while step and 0 <= other < len(acts) and count < 8:
        gone = (
            acts[other].began < said.ended - 0.3
            if step < 0
            else acts[other].ended > said.began + 0.3
        )
        if gone:
            break
        count += 1
        other += step
    return count
