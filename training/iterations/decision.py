"""Whether a candidate is better than M(t) with confidence. Pure functions."""

from __future__ import annotations

import math
from typing import Any

from training.evaluations.comparison import Difference

PROMOTED, KEPT = "promoted", "kept"


def one_sided(only_first: int, only_second: int) -> float:
    """Return the exact chance of so many pairs for the second if both were equally good.

    The upper tail of the binomial with p = 1/2 over the pairs that differ: McNemar's exact test
    (McNemar 1947) against "the second is no better", and the sign test where a pair has several
    samples.

    >>> one_sided(0, 5), one_sided(3, 3) > 0.5, one_sided(0, 0)
    (0.03125, True, 1.0)
    """
    pairs = only_first + only_second
    return sum(math.comb(pairs, n) for n in range(only_second, pairs + 1)) / 2**pairs


def fewest(level: float) -> int:
    """Return how many pairs must differ, all for the second, before `level` can be reached.

    >>> fewest(0.05), fewest(0.01)
    (5, 7)
    """
    return next(n for n in range(1, 64) if 0.5**n < level)


def decide(difference: Difference | None, *, level: float) -> dict[str, Any]:
    """Return the decision as JSON: "better", "p", "level", the difference, and "words"."""
    if difference is None:
        words = "No task and seed was judged in both evaluations: nothing can be compared."
        return {"better": False, "level": level, "p": None, "words": words}
    p = one_sided(difference.only_first, difference.only_second)
    gain = difference.success
    better = p < level and gain.value > 0
    found = {
        "better": better,
        "level": level,
        "p": p,
        "before": difference.first,
        "after": difference.second,
        "pairs": difference.pairs,
        "only_before": difference.only_first,
        "only_after": difference.only_second,
        "difference": gain.as_dict(),
        "reward": difference.reward.as_dict(),
    }
    return {**found, "words": _words(found)}


def _words(found: dict[str, Any]) -> str:
    points = 100 * found["difference"]["value"]
    low, high = (100 * found["difference"][end] for end in ("low", "high"))
    changed = found["only_before"] + found["only_after"]
    facts = (
        f"{100 * found['before']:.1f} % before, {100 * found['after']:.1f} % after on "
        f"{found['pairs']} tasks and seeds: {points:+.1f} points (95 % interval {low:+.1f} to "
        f"{high:+.1f}). {found['only_after']} were gained and {found['only_before']} lost; "
    )
    chance = f"the chance of that with no real gain is {found['p']:.3g}"
    level = f"{found['level']:g}"
    if found["better"]:
        return f"Better with confidence: {facts}{chance}, below the level of {level}."
    if points <= 0:
        return f"Not better: {facts}{chance}."
    if changed < (least := fewest(found["level"])):
        return (
            f"Not shown to be better: {facts}with so few changes no test can tell. At least "
            f"{least} must be gained, and none lost, to reach the level of {level}: evaluate on more seeds."
        )
    return f"Not shown to be better: {facts}{chance}, not below the level of {level}."
