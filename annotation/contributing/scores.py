"""How much an application, a function and a query count. Pure: rows in, numbers out.

UI-TARS-2 (2.3) names the dimensions and gives no weights; those are the Project's, equal at first.
"""

from __future__ import annotations

from typing import NamedTuple

from annotation.models import Application, Function, Project, Query

BANDS = ("low", "middle", "high")
HARD = ("easy", "medium", "hard")
RUBRIC: dict[str, tuple[str, tuple[str, str, str, str]]] = {
    "steps": ("Steps", ("up to 3", "4 to 8", "9 to 20", "more than 20")),
    "pages": ("Cross-page work", ("one page", "two or three pages", "many pages", "many apps")),
    "prerequisites": (
        "Prerequisites",
        ("none", "a file or an open page", "an account or settings", "results of earlier work"),
    ),
    "exceptions": (
        "Exceptions",
        ("none to expect", "a dialog to dismiss", "something to find out and retry",
         "another way has to be found"),
    ),
}  # fmt: skip
"""What 0, 1, 2 and 3 mean in each line of the difficulty rubric."""


class Cell(NamedTuple):
    """Where a query stands: a band of importance and one of difficulty."""

    importance: str
    difficulty: str


def weighted(*parts: tuple[float, float]) -> float:
    """Return the mean of (value, weight) pairs; 0 where no weight is above 0."""
    whole = sum(weight for _, weight in parts)
    return sum(value * weight for value, weight in parts) / whole if whole > 0 else 0.0


def score(application: Application, project: Project) -> float:
    """Return an application's combined score, from 0 to 1."""
    return weighted(
        (application.coverage, project.coverage_weight),
        (application.engagement, project.engagement_weight),
        (application.penetration, project.penetration_weight),
    )


def importance(function: Function, project: Project, *, most: float) -> float:
    """Return a function's importance, from 0 to 1; `most` is its application's highest frequency."""
    return weighted(
        (min(1.0, function.frequency / most) if most > 0 else 0.0, project.frequency_weight),
        (function.benefit, project.benefit_weight),
        (function.transfer, project.transfer_weight),
    )


def importance_band(value: float) -> str:
    """Return the third of [0, 1] that an importance lies in."""
    return BANDS[min(2, int(value * 3))]


def difficulty_band(query: Query) -> str:
    """Return easy (0 to 4), medium (5 to 8) or hard (9 to 12)."""
    return HARD[min(2, max(0, query.difficulty - 1) // 4)]
