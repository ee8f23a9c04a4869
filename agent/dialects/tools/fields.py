"""The fields of one tool call, read one by one; what nobody has read is an error, not a loss."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from agent.dialects.frame import Frame, scale_from, scale_to
from agent.dialects.grammar import LossyConversion, ParseError, quote
from trajectory import Point

Size = tuple[int, int]
LARGEST = 1e9
"""No place, count or time is larger; sums and products of such numbers are exact."""
_Word = TypeVar("_Word", bound=str)


class Fields:
    """The fields of the call `name`. Null is absent; 0 and "" are values."""

    def __init__(self, name: str, values: object) -> None:
        if isinstance(values, str):  # OpenAI-compatible servers send arguments as JSON text
            try:
                values = json.loads(values)
            except (ValueError, RecursionError) as error:
                raise ParseError(f"{name}: the arguments are no JSON: {error}") from None
        if not isinstance(values, Mapping):
            raise ParseError(f"{name}: the arguments are no object but {shown(values)}")
        self.name = name
        self._left = {str(key): value for key, value in values.items() if value is not None}

    def has(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> object:
        """Return a value, None where there is none."""
        return self._left.pop(key, None)

    def need(self, key: str) -> object:
        """Return a value; raises ParseError where there is none."""
        if key not in self._left:
            raise ParseError(f"{self.name} needs {key}")
        return self._left.pop(key)

    def text(self, key: str, default: str | None = None) -> str:
        value = default if default is not None and not self.has(key) else self.need(key)
        if not isinstance(value, str):
            raise ParseError(f"{self.name}: {key} is no text but {shown(value)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.need(key) if self.has(key) else default
        if not isinstance(value, bool):
            raise ParseError(f"{self.name}: {key} is neither true nor false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = default if default is not None and not self.has(key) else self.need(key)
        return number(value, f"{self.name}: {key}")

    def whole(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value):
            raise ParseError(f"{self.name}: {key} is no whole number but {value:g}")
        return int(value)

    def word(self, key: str, words: Sequence[_Word], default: _Word | None = None) -> _Word:
        value = self.text(key, default)
        if value not in words:
            raise ParseError(f"{self.name}: {key} is one of {', '.join(words)}, not {quote(value)}")
        return cast("_Word", value)

    def words(self, key: str) -> list[str]:
        value = self.need(key)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise ParseError(f"{self.name}: {key} is no list of texts")
        if not all(isinstance(one, str) for one in value):
            raise ParseError(f"{self.name}: {key} is no list of texts")
        return list(value)

    def place(self, size: Size, frame: Frame, x: str = "x", y: str = "y") -> Point:
        """Return the pixel of two fields that count the screen as `size`; raises ParseError."""
        return place_in(self.number(x), self.number(y), size, frame, self.name)

    def pair(self, key: str, size: Size, frame: Frame) -> Point:
        """Return the pixel of one field [x, y]; raises ParseError."""
        return pair_in(self.need(key), size, frame, f"{self.name}: {key}")

    def end(self) -> None:
        """Raise ParseError if a field is left that nobody has read."""
        if self._left:
            raise ParseError(f"{self.name} has no field {sorted(self._left)[0]!r}")


def shown(value: object) -> str:
    """Return a value quoted for a message, whatever a model has written."""
    try:
        return quote(repr(value))
    except ValueError:
        return "a number of thousands of digits"


def number(value: object, what: str) -> float:
    """Return a number of at most LARGEST either way; raises ParseError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ParseError(f"{what} is no number up to {LARGEST:g} but {shown(value)}")
    return value


def pair_in(value: object, size: Size, frame: Frame, what: str) -> Point:
    """Return the pixel of [x, y]; raises ParseError."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise ParseError(f"{what} is no pair of numbers but {shown(value)}")
    return place_in(number(value[0], what), number(value[1], what), size, frame, what)


def place_in(x: float, y: float, size: Size, frame: Frame, what: str) -> Point:
    """Return the pixel of the frame that (x, y) of a screen of `size` means; raises ParseError."""
    try:
        return scale_to(x, y, size, frame)
    except ValueError as error:
        raise ParseError(f"{what}: {error}") from None


def place_out(point: Point, size: Size, frame: Frame) -> Point:
    """Return the numbers that a dialect with a screen of `size` writes for a pixel.

    Raises LossyConversion for a place outside the frame.
    """
    x, y = point
    if not (0 <= x < frame.width and 0 <= y < frame.height):
        raise LossyConversion(f"({x}, {y}) is outside the frame of {frame.width}x{frame.height}")
    left, top = scale_from(x, y, size, frame)
    return min(left, size[0] - 1), min(top, size[1] - 1)


def seconds(duration_ms: int) -> int | float:
    """Return milliseconds as the seconds that a call writes: whole where they are whole."""
    return duration_ms // 1000 if duration_ms % 1000 == 0 else duration_ms / 1000


def milliseconds(value: float, what: str) -> int:
    """Return seconds as milliseconds; raises ParseError below 0 and above an hour."""
    if not 0 <= value <= 3600:
        raise ParseError(f"{what} takes 0 to 3600 seconds, not {value:g}")
    return round(value * 1000)
