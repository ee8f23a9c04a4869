"""Estimates as people read them: `{{ one|percent }}`, `{{ one|interval }}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from training.models import Run
from training.runs import series

register = template.Library()

NOTHING = "–"


@register.filter
def percent(estimate: Any) -> str:
    """Return a rate, or an estimate of one, in percent with one decimal."""
    value = _part(estimate, "value")
    return NOTHING if value is None else f"{100 * value:.1f} %"


@register.filter
def interval(estimate: Any) -> str:
    """Return the interval of an estimated rate in percent, as "44.0 to 97.2"."""
    low, high = _part(estimate, "low"), _part(estimate, "high")
    return "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


@register.filter
def figure(estimate: Any, digits: int = 1) -> str:
    """Return a number, or an estimate's value, with `digits` decimals."""
    value = _part(estimate, "value")
    return NOTHING if value is None else f"{value:.{digits}f}"


@register.simple_tag
def headline(run: Run) -> str:
    """Return the newest value of what tells first how a run goes, with its name."""
    for key in series.HEADLINE[run.kind]:
        value = run.metrics.get(key)
        if isinstance(value, int | float):
            return f"{series.SERIES[key].label} {value:.4g}"
    return NOTHING


def _part(estimate: Any, name: str) -> float | None:
    """Return one number of an Estimate, its JSON form, or a bare number (then only its value)."""
    if estimate is None or estimate == "":
        return None
    if isinstance(estimate, Mapping):
        return float(estimate[name])
    if isinstance(estimate, int | float):
        return float(estimate) if name == "value" else None
    return float(getattr(estimate, name))
