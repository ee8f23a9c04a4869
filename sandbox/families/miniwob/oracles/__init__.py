"""Who solves which page."""

from __future__ import annotations

from sandbox import miniwob
from sandbox.families.miniwob.oracles import (
    clicks,
    dates,
    dragging,
    drawing,
    forms,
    games,
    mail,
    numbers,
    shapes,
    social,
    texts,
    widgets,
)
from sandbox.families.miniwob.oracles.known import ElementOracle
from sandbox.families.miniwob.sight import PageOracle, Script
from sandbox.families.protocol import Oracle

SCRIPTS: dict[str, Script] = {
    **clicks.SCRIPTS, **dates.SCRIPTS, **dragging.SCRIPTS, **drawing.SCRIPTS, **forms.SCRIPTS,
    **games.SCRIPTS, **mail.SCRIPTS, **numbers.SCRIPTS, **shapes.SCRIPTS, **social.SCRIPTS,
    **texts.SCRIPTS, **widgets.SCRIPTS,
}  # fmt: skip

SOLVED = frozenset(SCRIPTS) | frozenset(miniwob.SCRIPTS)


def oracle_of(page: str, seed: int) -> Oracle | None:
    """Return what solves the episode of `seed`; None where nobody has written it down."""
    if page in miniwob.SCRIPTS:
        return ElementOracle(page)
    return PageOracle(SCRIPTS[page], seed) if page in SCRIPTS else None
