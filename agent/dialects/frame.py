"""The frame that a dialect's coordinates and element numbers refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trajectory import Element, Observation, Point

Coordinates: TypeAlias = Literal["thousandth", "resized", "frame"]

MAX_ELEMENTS = 60
"""How many elements a prompt lists: a small model on two cores has to read all of them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of the picture in pixels, and what can be named on it (numbered from 1)."""

    width: int
    height: int
    elements: tuple[Element, ...] = ()

    @property
    def centre(self) -> Point:
        return self.width // 2, self.height // 2


def frame_of(observation: Observation) -> Frame:
    """Return the frame of an observation; elements that were not asked for are none."""
    return Frame(observation.width, observation.height, observation.elements or ())


def shown(elements: Sequence[Element]) -> tuple[int, ...]:
    """Return the numbers (from 1) of the elements that a prompt lists, in reading order.

    At most MAX_ELEMENTS: plain text gives way first, then what comes last on the screen. Prompt,
    parser and writer share this, so that a model is never taught a number that it was not shown.
    """
    numbers = range(1, len(elements) + 1)
    if len(elements) <= MAX_ELEMENTS:
        return tuple(numbers)
    by_use = sorted(numbers, key=lambda n: elements[n - 1].role == "text")
    return tuple(sorted(by_use[:MAX_ELEMENTS]))


def smart_resize(
    height: int,
    width: int,
    *,
    factor: int = 28,
    min_pixels: int = 100 * 28 * 28,
    max_pixels: int = 16384 * 28 * 28,
) -> tuple[int, int]:
    """Return the (height, width) to which Qwen2-VL image processors scale a picture.

    Sides are multiples of `factor`, the area lies within the two limits, the ratio is kept as
    nearly as that allows. Source: qwen_vl_utils.smart_resize. Raises ValueError beyond 200 : 1.
    """
    if max(height, width) / min(height, width) > 200:
        raise ValueError(f"a picture of {width}x{height} is longer than 200 : 1")
    new_height = max(factor, round(height / factor) * factor)
    new_width = max(factor, round(width / factor) * factor)
    if new_height * new_width > max_pixels:
        beta = (height * width / max_pixels) ** 0.5
        new_height = max(factor, int(height / beta / factor) * factor)
        new_width = max(factor, int(width / beta / factor) * factor)
    elif new_height * new_width < min_pixels:
        beta = (min_pixels / (height * width)) ** 0.5
        new_height = -int(-height * beta // factor) * factor
        new_width = -int(-width * beta // factor) * factor
    return new_height, new_width


def span(coordinates: Coordinates, frame: Frame) -> tuple[int, int]:
    """Return the numbers that a model writes for the right and the bottom edge of `frame`."""
    match coordinates:
        case "thousandth":
            return 1000, 1000
        case "resized":
            height, width = smart_resize(frame.height, frame.width)
            return width, height
        case "frame":
            return frame.width, frame.height


def to_frame(x: float, y: float, coordinates: Coordinates, frame: Frame) -> Point:
    """Return the pixel that a model's numbers mean.

    The far edge belongs to the last pixel; raises ValueError for numbers beyond it.
    """
    try:
        return scale_to(x, y, span(coordinates, frame), frame)
    except ValueError as error:
        raise ValueError(f"{error} ({coordinates})") from None


def from_frame(x: int, y: int, coordinates: Coordinates, frame: Frame) -> Point:
    """Return the whole numbers that a model writes for a pixel.

    Where a model's unit is coarser than a pixel the place comes back within half a unit.
    """
    return scale_from(x, y, span(coordinates, frame), frame)


def scale_to(x: float, y: float, size: tuple[int, int], frame: Frame) -> Point:
    """Return the pixel of (x, y) on a screen that is counted as `size`; raises ValueError outside it."""
    width, height = size
    if not (0 <= x <= width and 0 <= y <= height):
        raise ValueError(f"({x:g}, {y:g}) is outside 0..{width}, 0..{height}")
    return (
        min(round(x * frame.width / width), frame.width - 1),
        min(round(y * frame.height / height), frame.height - 1),
    )


def scale_from(x: int, y: int, size: tuple[int, int], frame: Frame) -> Point:
    """Return the numbers for a pixel on a screen that is counted as `size`."""
    return round(x * size[0] / frame.width), round(y * size[1] / frame.height)
