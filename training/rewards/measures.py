"""How often a reward model was right. Pure functions of a calibration's answers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from training.evaluations.statistics import RESAMPLES, Estimate, percentile, wilson

Answer: TypeAlias = Mapping[str, Any]
"""{"truth": 0 or 1} and, once judged, {"reward": 0, 1 or None, "error": str}."""

Cell: TypeAlias = Literal[
    "true_positive", "false_positive", "true_negative", "false_negative", "abstained", "unreadable",
    "open",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts of a calibration and what follows from them; a measure is None where it has no basis.

    Success is the positive class. An abstention is no judgement: it is in neither precision nor
    accuracy, but a success on which the model abstains was not found, so it counts against recall.
    """

    counts: Mapping[str, int]
    positives: int
    negatives: int
    precision: Estimate | None
    """Of the episodes called a success, the share that is one."""
    recall: Estimate | None
    """Of the successes, the share that was called one."""
    specificity: Estimate | None
    """Of the failures, the share that was called one."""
    accuracy: Estimate | None
    """Of the episodes that were judged at all, the share judged rightly."""
    coverage: Estimate | None
    """Of all episodes, the share that was judged at all."""
    f1: Estimate | None
    """2 precision recall / (precision + recall); its interval is a seeded bootstrap over episodes."""


def cell(answer: Answer) -> Cell:
    """Return where an answer stands in the confusion matrix, or beside it."""
    if "reward" not in answer:
        return "open"
    if answer["reward"] is None:
        return "unreadable" if answer.get("error") else "abstained"
    if answer["truth"]:
        return "true_positive" if answer["reward"] else "false_negative"
    return "false_positive" if answer["reward"] else "true_negative"


def measure(answers: Sequence[Answer]) -> Measures:
    """Return the measures of the answers so far."""
    cells = [cell(answer) for answer in answers if "reward" in answer]
    truths = [bool(answer["truth"]) for answer in answers if "reward" in answer]
    counts = {name: cells.count(name) for name in get_args(Cell)}
    positives, tp, tn = sum(truths), counts["true_positive"], counts["true_negative"]
    judged = len(cells) - counts["abstained"] - counts["unreadable"]
    return Measures(
        counts=counts,
        positives=positives,
        negatives=len(cells) - positives,
        precision=wilson(tp, tp + counts["false_positive"]),
        recall=wilson(tp, positives),
        specificity=wilson(tn, len(cells) - positives),
        accuracy=wilson(tp + tn, judged),
        coverage=wilson(judged, len(cells)),
        f1=_f1(cells, truths),
    )


def _f1(cells: Sequence[str], truths: Sequence[bool]) -> Estimate | None:
    if not cells or not (any(truths) or "false_positive" in cells):
        return None
    # F1 = 2 TP / (called a success + successes): each episode adds to numerator and denominator.
    parts = [
        (2 * (name == "true_positive"), (name in ("true_positive", "false_positive")) + truth)
        for name, truth in zip(cells, truths, strict=True)
    ]
    draw, values = random.Random(0), []
    for _ in range(RESAMPLES):
        sample = draw.choices(parts, k=len(parts))
        below = sum(part[1] for part in sample)
        values.append(sum(part[0] for part in sample) / below if below else 0.0)
    values.sort()
    value = sum(part[0] for part in parts) / sum(part[1] for part in parts)
    return Estimate(value, percentile(values, 0.025), percentile(values, 0.975))
