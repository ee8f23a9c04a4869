"""The figures of an evaluation, against values that are known or can be counted."""

from __future__ import annotations

import doctest
import itertools
import math
import random

import pytest

from training.evaluations import statistics
from training.evaluations.comparison import compare
from training.evaluations.results import Played, curve, passes, results
from training.evaluations.statistics import bootstrap_mean, mcnemar, pass_at_k, wilson


def played(reward, *, task="toys/a", seed=0, repeat=0, steps=3, state="done", score=None, lost=0):
    return Played(task, seed, repeat, state, reward, score, steps, lost)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(statistics).failed == 0


# Of statsmodels.stats.proportion.proportion_confint(method="wilson").
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(8, 10, 0.490162, 0.943318), (1, 1, 0.206549, 1.0), (50, 100, 0.403832, 0.596168)],
)
def test_wilson_has_the_known_bounds(successes, trials, low, high):
    found = wilson(successes, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    assert wilson(0, 0) is None


def test_wilson_holds_the_truth_as_often_as_it_says():
    draw, inside, trials = random.Random(1), 0, 2000
    for _ in range(trials):
        found = wilson(sum(draw.random() < 0.3 for _ in range(40)), 40)
        inside += found.low <= 0.3 <= found.high
    assert 0.93 < inside / trials < 0.98


def test_the_bootstrap_agrees_with_theory_and_with_itself():
    values = [random.Random(n).gauss(5, 2) for n in range(200)]
    found = bootstrap_mean(values)
    mean = math.fsum(values) / 200
    error = math.sqrt(sum((v - mean) ** 2 for v in values) / 199 / 200)
    assert found.value == pytest.approx(mean)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert bootstrap_mean(values) == found != bootstrap_mean(values, seed=1)
    assert bootstrap_mean([]) is None


@pytest.mark.parametrize(("samples", "successes"), [(6, 2), (5, 0), (5, 5), (7, 1)])
def test_pass_at_k_is_the_share_of_the_subsets_with_a_success(samples, successes):
    outcomes = [True] * successes + [False] * (samples - successes)
    for k in range(1, samples + 1):
        subsets = list(itertools.combinations(outcomes, k))
        assert pass_at_k(samples, successes, k) == pytest.approx(
            sum(map(any, subsets)) / len(subsets)
        )
    with pytest.raises(ValueError, match="can't be estimated"):
        pass_at_k(samples, successes, samples + 1)


def test_mcnemar_is_the_binomial_test():
    assert mcnemar(0, 5) == pytest.approx(2 * 0.5**5)
    assert mcnemar(2, 8) == pytest.approx(2 * sum(math.comb(10, n) for n in range(3)) / 1024)
    assert mcnemar(8, 2) == mcnemar(2, 8)


# -- results -------------------------------------------------------------------------------------

TASKS = [{"id": "toys/a", "reference": 0.0}, {"id": "games/b", "reference": 200.0, "oracle": True}]


def test_a_broken_environment_is_in_no_mean():
    episodes = [
        played(1.0), played(0.0, seed=1, steps=9), played(None, seed=2, state="broken", lost=3),
        played(None, seed=3), played(None, seed=4, state="cancelled"),
        played(None, seed=5, state="waiting"), played(1.0, seed=6, steps=5, lost=1),
    ]  # fmt: skip
    one = results(episodes, tasks=TASKS, max_steps=10)["overall"]
    assert (one["episodes"], one["judged"], one["successes"]) == (7, 3, 2)
    assert one["success"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert one["success"] == one["reward"]
    assert (one["env_failures"], one["attempts_lost"]) == (1, 4)
    assert (one["unjudged"], one["cancelled"], one["open"]) == (1, 1, 1)
    assert (one["steps"], one["steps_to_success"]) == (pytest.approx(17 / 3, abs=1e-3), 4)


def test_families_and_tasks_add_up_and_scores_are_normalised():
    episodes = [played(1.0)]
    episodes += [
        played(score / 200, task="games/b", seed=seed, score=score)
        for seed, score in enumerate([50.0, 100.0, 240.0])
    ]
    found = results(episodes, tasks=TASKS, max_steps=10)
    assert list(found["families"]) == ["toys", "games"]
    game = found["tasks"]["games/b"]
    assert game["normalised"]["value"] == pytest.approx(65.0)
    assert game["normalised"]["low"] < 65 < game["normalised"]["high"]
    assert (game["successes"], game["reference"], game["oracle"]) == (1, 200.0, True)
    assert found["tasks"]["toys/a"]["normalised"] is None


def test_a_task_that_was_not_played_has_no_estimate():
    found = results([], tasks=TASKS, max_steps=10)
    assert found["overall"]["success"] is None
    assert found["tasks"]["toys/a"]["steps"] is None
    assert (found["curve"], found["pass_at_k"]) == ([], [])


def test_samples_of_one_seed_are_no_independent_evidence():
    once = [played(float(seed % 2), seed=seed) for seed in range(10)]
    thrice = [
        played(float(seed % 2), seed=seed, repeat=repeat)
        for seed in range(10)
        for repeat in range(3)
    ]
    first, second = (results(e, tasks=TASKS, max_steps=9)["overall"] for e in (once, thrice))
    assert first["success"] == second["success"]


def test_the_curve_rises_with_the_steps_allowed_and_ends_at_the_rate():
    episodes = [
        played(1.0, steps=2), played(1.0, seed=1, steps=5), played(0.0, seed=2, steps=10),
        played(0.5, seed=3, steps=1),
    ]  # fmt: skip
    points = {point["steps"]: point["value"] for point in curve(episodes, 10)}
    assert [points[n] for n in (1, 2, 4, 5, 10)] == [0, 0.25, 0.25, 0.5, 0.5]
    long = [point["steps"] for point in curve(episodes, 1000)]
    assert (long[0], long[-1], len(long) < 65) == (1, 1000, True)


def test_pass_at_k_leaves_out_what_has_too_few_samples():
    episodes = [played(float(n == 0), repeat=n) for n in range(4)]
    episodes += [played(0.0, seed=1, repeat=n) for n in range(3)]
    found = {one["k"]: (one["value"], one["pairs"]) for one in passes(episodes)}
    assert found[1] == (pytest.approx(0.125), 2)
    assert found[4] == (1.0, 1)
    assert list(found) == [1, 2, 4]


# -- comparison ----------------------------------------------------------------------------------


def test_two_are_compared_on_what_both_played():
    first = [played(0.0, seed=seed) for seed in range(30)]
    second = [played(float(seed % 3 > 0), seed=seed) for seed in range(10, 50)]
    second.append(played(1.0, task="toys/other"))
    found = compare(first, second)
    assert (found.pairs, found.first) == (20, 0.0)
    assert found.success.value == pytest.approx(found.second)
    assert (found.only_first, found.only_second) == (0, round(20 * found.second))
    assert found.sure
    assert found.in_words("old", "new").startswith("new is better than old with confidence: ")
    back = compare(second, first)
    assert back.success.value == -found.success.value
    assert back.in_words("new", "old").startswith("new is better than old with confidence: ")


def test_few_pairs_prove_nothing():
    found = compare([played(0.0)], [played(1.0)])
    assert (found.success.low, found.p, found.sure) == (1.0, 1.0, False)
    assert "No difference is shown" in found.in_words("a", "b")
    same = compare([played(1.0)], [played(1.0)])
    assert not same.sure
    assert compare([played(1.0)], [played(1.0, seed=9)]) is None
    assert compare([played(None, state="broken")], [played(1.0)]) is None


def test_equal_policies_are_rarely_called_different():
    draw, called = random.Random(3), 0
    for _ in range(30):
        first, second = (
            [played(float(draw.random() < 0.5), seed=seed) for seed in range(40)] for _ in range(2)
        )
        called += compare(first, second).sure
    assert called <= 4
