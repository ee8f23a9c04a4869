"""Which action is meant by an utterance: by time and by content, solved for the whole recording. Pure.

People think aloud before an action, during it and after it, and in the order of what they do. Every
pair of utterance and action has a cost; the cheapest sequence in which later utterances mean later
actions (one step back is dear, more is not possible) is found by dynamic programming, and how sure a
pair is by the sums over all sequences (forward and backward).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from annotation.recordings.acts import Act, Pair, Spoken
from annotation.recordings.content_fit import Content

REACH_S = 40.0  # further away than this nobody means an action
BEFORE_S, AFTER_S = 4.0, 1.6  # time in which a pair gets dearer by one
AFTER = 0.7  # what speaking after the action costs at once
OTHERS = 0.9  # for every other action between the two
BACK = 2.5  # to mean an earlier action than the utterance before did
SAME = 0.25  # to mean the same action as the utterance before


def align(said: Sequence[Spoken], acts: Sequence[Act]) -> list[Pair]:
    """Return one pair per utterance; both lists are in order of time, and so are their times."""
    if not acts:
        return [Pair(None, 0.0) for _ in said]
    content = Content(acts)
    starts = [act.began for act in acts]
    rows = [_costs(one, acts, starts, content) for one in said]
    found: list[Pair] = [Pair(None, 0.0)] * len(said)
    # Utterances that lie near no action are left out; the others are a chain.
    chain = [at for at, row in enumerate(rows) if row]
    path, fits = _solved([rows[at] for at in chain])
    for at, act, fit in zip(chain, path, fits, strict=True):
        found[at] = Pair(act, fit)
    return found


def _costs(
    said: Spoken, acts: Sequence[Act], starts: Sequence[float], content: Content
) -> dict[int, float]:
    """Return what it costs that the utterance means each action within reach."""
    low = bisect.bisect_left(starts, said.began - REACH_S - 30.0)
    high = bisect.bisect_right(starts, said.ended + REACH_S)
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


def _solved(rows: Sequence[dict[int, float]]) -> tuple[list[int], list[float]]:
    """Return the cheapest path through the rows and how sure each of its pairs is."""
    if not rows:
        return [], []
    best: list[dict[int, tuple[float, int]]] = []
    forward: list[dict[int, float]] = []
    for at, row in enumerate(rows):
        here: dict[int, tuple[float, int]] = {}
        sums: dict[int, float] = {}
        for act, cost in row.items():
            if at == 0:
                here[act], sums[act] = (cost, -1), -cost
                continue
            ways = [(best[-1][old][0] + _step(old, act), old) for old in best[-1]]
            dear, old = min(ways)
            here[act] = (dear + cost, old)
            sums[act] = _log_sum([forward[-1][o] - _step(o, act) for o in forward[-1]]) - cost
        best.append(here)
        forward.append(sums)
    path = [min(best[-1], key=lambda act: best[-1][act][0])]
    for at in range(len(rows) - 1, 0, -1):
        path.append(best[at][path[-1]][1])
    path.reverse()
    backward: dict[int, float] = dict.fromkeys(rows[-1], 0.0)
    fits = [0.0] * len(rows)
    for at in range(len(rows) - 1, -1, -1):
        both = {act: forward[at][act] + backward[act] for act in rows[at]}
        fits[at] = math.exp(both[path[at]] - _log_sum(list(both.values())))
        if at:
            backward = {
                old: _log_sum([backward[act] - rows[at][act] - _step(old, act) for act in rows[at]])
                for old in rows[at - 1]
            }
    return path, fits


def _step(old: int, act: int) -> float:
    """Return what it costs to go on from one action to another."""
    if act > old:
        return 0.0
    if act == old:
        return SAME
    return BACK if act == old - 1 else 6.0 * (old - act)


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
