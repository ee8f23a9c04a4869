"""Action dialects: how a model family writes its actions, to and from the canonical ones."""

from __future__ import annotations

from typing import Protocol

from agent.dialects.box import BoxDialect
from agent.dialects.element import ElementDialect
from agent.dialects.frame import Coordinates, Frame, frame_of
from agent.dialects.grammar import DialectError, LossyConversion, Parsed, ParseError
from agent.dialects.point import PointDialect
from trajectory import Action

__all__ = [
    "Coordinates",
    "Dialect",
    "DialectError",
    "Frame",
    "LossyConversion",
    "ParseError",
    "Parsed",
    "frame_of",
    "load",
]


class Dialect(Protocol):
    """One way of writing actions; `space` is its action space as a prompt states it."""

    @property
    def name(self) -> str: ...

    @property
    def coordinates(self) -> Coordinates: ...

    @property
    def space(self) -> str: ...

    def parse(self, text: str, frame: Frame) -> Parsed:
        """Read a whole reply; raises ParseError naming what can't be read."""
        ...

    def write(self, action: Action, frame: Frame) -> str:
        """Write one action; raises LossyConversion naming what would be lost."""
        ...


def load(name: str, coordinates: Coordinates | None = None) -> Dialect:
    """Return the dialect called `name`: "box", "point" or "element".

    Without `coordinates` each takes its best-known model's: box the pixels of the resized picture
    (UI-TARS 1.5), point thousandths (UI-TARS-2). The element dialect has none. Raises ValueError.
    """
    match name:
        case "box":
            return BoxDialect(coordinates or "resized")
        case "point":
            return PointDialect(coordinates or "thousandth")
        case "element":
            return ElementDialect()
    raise ValueError(f"unknown dialect {name!r}; known: box, point, element")
