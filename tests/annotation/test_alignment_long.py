"""Alignment over hours: decided window by window, with the result of the whole recording."""

from __future__ import annotations

import itertools
import math
import random
import tracemalloc
from unittest import mock

import pytest

from annotation.recordings import chain
from annotation.recordings.alignment import align
from benchmarks.alignment import accuracy, joined, ours
from trajectory import Click


def rows(seed: int, count: int, wide: int) -> list[dict[int, float]]:
    """Choices that move on with the rows, as actions do with utterances."""
    rng = random.Random(seed)
    found, first = [], 0
    for _ in range(count):
        acts = rng.sample(range(first, first + wide + 2), rng.randint(1, wide))
        found.append({act: rng.uniform(-2, 6) for act in acts})
        first += rng.randint(0, 2)
    return found


def step(old: int, act: int) -> float:
    if act >= old:
        return chain.SAME if act == old else 0.0
    return chain.BACK if act == old - 1 else chain.FURTHER_BACK * (old - act)


def by_trying_all(found: list[dict[int, float]]) -> list[tuple[int, float]]:
    """Return the cheapest sequence and the share of all weights that agree with each of its pairs."""
    costs = {
        way: sum(row[act] for row, act in zip(found, way, strict=True))
        + sum(step(a, b) for a, b in itertools.pairwise(way))
        for way in itertools.product(*found)
    }
    best = min(costs, key=lambda way: costs[way])
    whole = sum(math.exp(-cost) for cost in costs.values())
    return [
        (act, sum(math.exp(-c) for way, c in costs.items() if way[at] == act) / whole)
        for at, act in enumerate(best)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_chain_finds_what_trying_all_finds(seed: int) -> None:
    small = rows(seed, count=5, wide=5)
    wanted = by_trying_all(small)
    assert [(act, pytest.approx(fit, abs=1e-9)) for act, fit in wanted] == list(chain.solved(small))


@pytest.mark.parametrize("seed", range(5))
def test_windows_give_what_the_whole_gives(seed: int) -> None:
    many = rows(seed, count=400, wide=12)
    with mock.patch.multiple(chain, WINDOW=10_000, LAG=0):
        whole = list(chain.solved(many))
    with mock.patch.multiple(chain, WINDOW=50, LAG=40):
        windows = list(chain.solved(many))
    assert [act for act, _ in windows] == [act for act, _ in whole]
    assert all(abs(a - b) < 1e-3 for (_, a), (_, b) in zip(whole, windows, strict=True))


def test_hours_are_aligned_as_well_as_minutes_and_memory_grows_by_the_answer_alone() -> None:
    def peak(actions: int) -> tuple[float, float]:
        made = joined(70_000, actions=actions, held_out=True)
        tracemalloc.start()
        right, total = accuracy(ours, [made])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return right / total, most / len(made.acts)

    (_, few), (right, many) = peak(250), peak(2000)
    assert right >= 0.95
    assert many < few * 1.3  # bytes for each action


def test_a_thousand_actions_within_a_second_are_bounded() -> None:
    from annotation.recordings.acts import Act, Spoken

    acts = [Act(n / 1000, n / 1000 + 0.0005, Click(1, 1)) for n in range(5000)]
    said = [Spoken(n / 10, n / 10 + 0.05, "and here") for n in range(50)]
    assert all(pair.act is not None for pair in align(said, acts))
