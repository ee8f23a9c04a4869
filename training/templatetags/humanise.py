"""How the training pages write times and sums."""

from __future__ import annotations

from collections.abc import Iterable

from django import template

register = template.Library()


@register.filter
def seconds(value: float | None) -> str:
    """Write seconds as "0.4 s", "42 s", "3 min 5 s" or "2 h 4 min"."""
    if value is None:
        return "–"
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@register.filter
def total(values: Iterable[float]) -> float:
    return sum(values)
