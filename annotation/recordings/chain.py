"""The cheapest way through rows of choices, and how sure each of its pairs is. Pure.

Viterbi and forward-backward over a chain, decided WINDOW rows at a time once LAG more are known: memory
does not grow with the rows, and what lies further ahead changes nothing any more. Time is linear in
all choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

WINDOW, LAG = 256, 64

BACK = 2.5  # to choose one less than the row before did
FURTHER_BACK = 6.0  # times how many less
SAME = 0.25


@dataclass(slots=True)
class _Row:
    """A row's choices in rising order with what they cost, and what the rows before say of them."""

    acts: list[int]
    costs: list[float]
    best: list[float] = field(default_factory=list)
    before: list[int] = field(default_factory=list)  # the place in the row before on the best way
    sums: list[float] = field(default_factory=list)


def solved(rows: Iterable[Mapping[int, float]]) -> Iterator[tuple[int, float]]:
    """Yield for each row its choice on the cheapest way, and how sure that is, 0 to 1.

    A row maps choices to costs and is not empty.
    """
    held: list[_Row] = []
    for choices in rows:
        acts = sorted(choices)
        row = _Row(acts, [choices[act] for act in acts])
        if held and acts[0] > held[-1].acts[-1]:  # what comes depends on nothing before
            yield from _decided(held, len(held))
            held = []
        _forward(held[-1] if held else None, row)
        held.append(row)
        if len(held) == WINDOW + LAG:
            yield from _decided(held, WINDOW)
            del held[:WINDOW]
    yield from _decided(held, len(held))


def _forward(old: _Row | None, row: _Row) -> None:
    if old is None:
        row.best, row.before = list(row.costs), [-1] * len(row.acts)
        row.sums = [-cost for cost in row.costs]
        return
    best, places = old.best, range(len(old.acts))
    far = [best[at] + FURTHER_BACK * old.acts[at] for at in places]

    def cheaper(a: int, b: int) -> int:
        return a if best[a] <= best[b] else b

    def nearer(a: int, b: int) -> int:
        return b if far[b] <= far[a] else a

    cheap = list(accumulate(places, cheaper))
    dear = list(accumulate(reversed(places), nearer))[::-1]
    less = list(accumulate(old.sums, _add))
    more = list(
        accumulate(
            (old.sums[at] - FURTHER_BACK * old.acts[at] for at in reversed(places)), _add
        )
    )[::-1]  # fmt: skip
    at = same = 0
    for act, cost in zip(row.acts, row.costs, strict=True):
        while at < len(old.acts) and old.acts[at] < act:
            at += 1
        same = at
        ways: list[tuple[float, int]] = []
        total = -math.inf
        if at:
            ways.append((old.best[cheap[at - 1]], cheap[at - 1]))
            total = less[at - 1]
        for other, price in ((act, SAME), (act + 1, BACK)):
            if same < len(old.acts) and old.acts[same] == other:
                ways.append((old.best[same] + price, same))
                total = _add(total, old.sums[same] - price)
                same += 1
        if same < len(old.acts):
            ways.append((far[dear[same]] - FURTHER_BACK * act, dear[same]))
            total = _add(total, more[same] + FURTHER_BACK * act)
        price, place = min(ways)
        row.best.append(price + cost)
        row.before.append(place)
        row.sums.append(total - cost)


def _backward(row: _Row, after: Sequence[float], old: _Row) -> list[float]:
    """Return what the rows from `row` on say of the choices of the row before it, `old`."""
    here = [value - cost for value, cost in zip(after, row.costs, strict=True)]
    later = list(accumulate(reversed(here), _add))[::-1]
    earlier = list(
        accumulate((v + FURTHER_BACK * act for v, act in zip(here, row.acts, strict=True)), _add)
    )
    found = []
    at = 0  # the first choice of `row` that is not less than act - 1
    for act in old.acts:
        while at < len(row.acts) and row.acts[at] < act - 1:
            at += 1
        total = earlier[at - 1] - FURTHER_BACK * act if at else -math.inf
        next_ = at
        for other, price in ((act - 1, BACK), (act, SAME)):
            if next_ < len(row.acts) and row.acts[next_] == other:
                total = _add(total, here[next_] - price)
                next_ += 1
        if next_ < len(row.acts):
            total = _add(total, later[next_])
        found.append(total)
    return found


def _decided(rows: Sequence[_Row], count: int) -> Iterator[tuple[int, float]]:
    """Yield the first `count` of `rows` decided."""
    if not rows:
        return
    last = rows[-1]
    place = min(range(len(last.acts)), key=lambda at: last.best[at])
    after = [0.0] * len(last.acts)
    found: list[tuple[int, float]] = []
    for at in range(len(rows) - 1, -1, -1):
        row = rows[at]
        both = [f + b for f, b in zip(row.sums, after, strict=True)]
        whole = _sum(both)
        found.append((row.acts[place], math.exp(both[place] - whole)))
        if at:
            after = _backward(row, after, rows[at - 1])
            place = row.before[place]
    found.reverse()
    yield from found[:count]


def _add(one: float, other: float) -> float:
    """Return the logarithm of the sum of two numbers given by theirs."""
    top, low = (one, other) if one >= other else (other, one)
    return top if low == -math.inf else top + math.log1p(math.exp(low - top))


def _sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
